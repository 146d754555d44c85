// What runs are made of, handed down by the composition root. Everything is borrowed and outlives
// the manager.
#pragma once

#include "base/log.hpp"
#include "base/offload.hpp"
#include "runtime/agents/agent_table.hpp"
#include "runtime/models/model_registry.hpp"
#include "runtime/runs/agent_snapshots.hpp"
#include "runtime/runs/request_queue.hpp"
#include "runtime/store/store.hpp"
#include "runtime/tools/environment.hpp"
#include "runtime/tools/tool.hpp"
#include "sandbox/scope.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ars::runs {

class AttachmentService;

struct RunSettings {
    std::string default_model;
    agents::ApprovalMode approval_mode = agents::ApprovalMode::ask;
    std::uint32_t max_concurrent = base::limits::kMaxConcurrentRuns;
    std::uint32_t max_children = base::limits::kMaxChildRuns;
    std::uint32_t max_queued = kMaxQueuedRequests;
    std::uint32_t max_steps = base::limits::kMaxSteps;  // no run gets more, whatever its agent says
    base::milliseconds timeout = base::limits::kRunTimeLimit;
    bool children_outlive_root = false;
    std::vector<std::string> policies;  // names: a thread has a scope for each that it used
    // Of every command; an agent's own variables come over it.
    std::map<std::string, std::string> environment = sandbox::default_environment();
    base::Redactor secrets;  // of the configuration: no text that a run stores may hold one
};

struct RunParts {
    base::asio::any_io_executor executor;
    store::Store& store;
    const agents::AgentTable& agents;
    const models::ModelRegistry& models;
    sandbox::Sandbox& sandbox;
    base::Offload& offload;
    const base::Log& log;
    RunSettings settings;
    std::function<base::Result<std::shared_ptr<fsmount::Workspace>>(const std::string& uid)>
        open_workspace;
    std::function<
        base::Result<sandbox::ScopeSpec>(const fsmount::Workspace&, const std::string& policy)>
        scope_spec;
    // Nothing when there is no such user (any more).
    std::function<std::optional<agents::User>(const std::string& uid)> user_of;
    AttachmentService* attachments = nullptr;  // none: nobody can upload any
    std::shared_ptr<AgentSnapshots> snapshots = std::make_shared<AgentSnapshots>();
};

// Every tool there is; what an agent gets of them is decided by prompt.cpp for each run.
using ToolSet = std::vector<std::unique_ptr<tools::Tool>>;

}  // namespace ars::runs
