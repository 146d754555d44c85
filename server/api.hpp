// What the routes work with, and the list of them. The composition root builds one Api;
// routes_*.cpp add their paths.
#pragma once

#include "base/limits.hpp"
#include "base/log.hpp"
#include "runtime/agents/agent_catalog.hpp"
#include "runtime/agents/agent_definition.hpp"
#include "runtime/runs/attachment_service.hpp"
#include "runtime/runs/run_manager.hpp"
#include "server/auth.hpp"
#include "server/file_transfer.hpp"
#include "server/http_limits.hpp"

#include <cstdint>
#include <string>

namespace ars::server {

class Router;
class Reloader;

// All parts outlive the listener.
struct Api {
    runs::RunManager& runs;
    const agents::AgentTable& agents;  // of the catalog
    agents::AgentCatalog& catalog;
    agents::KnownNames names;  // what agents may name, sub-agents apart
    Reloader& reloader;
    people::Directory& people;
    const Authenticator& authenticator;
    const base::Log& log;
    HttpStats& stats;
    std::string version;
    std::string sandbox_tier;     // shown by discovery: "namespaces", "landlock"
    std::string child_io;         // "io_uring", "epoll"
    std::int64_t started_ms = 0;  // wall clock
    FileAccess files;
    runs::AttachmentService& attachments;
    HttpLimits limits;
    const Router* router = nullptr;  // sets itself
    std::string openapi = {};        // made when it is first asked for
};

void add_agent_routes(Router& router);
void add_backend_routes(Router& router);
void add_reload_routes(Router& router);
void add_run_routes(Router& router);
void add_request_routes(Router& router);
void add_thread_routes(Router& router);
void add_checkpoint_routes(Router& router);
void add_file_routes(Router& router);
void add_search_routes(Router& router);
void add_project_routes(Router& router);
void add_attachment_routes(Router& router);
void add_artifact_routes(Router& router);
void add_invocation_routes(Router& router);
void add_user_env_routes(Router& router);
void add_people_routes(Router& router);
void add_key_routes(Router& router);
void add_system_routes(Router& router);
// All of the above.
void add_routes(Router& router);

}  // namespace ars::server
