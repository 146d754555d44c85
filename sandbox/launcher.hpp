// Starts scopes: keeps templates (sandbox/scope_template), asks one of them for a new pid 1, and
// waits until that reports that it is ready or which step failed.
#pragma once

#include "base/async.hpp"
#include "base/fd.hpp"
#include "base/result.hpp"
#include "sandbox/cgroup.hpp"
#include "sandbox/scope.hpp"
#include "sandbox/seccomp_filter.hpp"

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>

#include <sys/types.h>

namespace ars::sandbox {

// A child of ours that must not be forgotten: killed and reaped at the latest by the destructor.
class ChildProcess {
  public:
    ChildProcess() = default;
    explicit ChildProcess(pid_t pid);
    ChildProcess(ChildProcess&& other) noexcept;
    ChildProcess& operator=(ChildProcess&& other) noexcept;
    ChildProcess(const ChildProcess&) = delete;
    ChildProcess& operator=(const ChildProcess&) = delete;
    ~ChildProcess();

    [[nodiscard]] pid_t pid() const { return pid_; }
    // True until it was reaped here.
    [[nodiscard]] bool running() const { return pid_ > 0; }
    void kill();
    // Reaps it once it has ended; false when the deadline passed first. The end of a pid
    // namespace's init is the proof that nothing in that namespace is left.
    base::Task<bool> wait_end(base::Deadline deadline);

  private:
    bool reap(int options);
    pid_t pid_ = 0;
    base::Fd pidfd_;
};

// One template process and its control socket.
struct ScopeTemplate {
    ChildProcess process;
    base::Fd control;
    bool own_network = true;
    bool asked = false;  // it has its image
    std::string image;   // what all its scopes show, in the form it was sent
    std::shared_ptr<const std::vector<fsmount::Mount>> latest;  // plan of that form
};

// A scope's claim on a network of its template, which may give it to another scope afterwards.
// Destroyed once nothing of the scope runs.
class NetworkLease {
  public:
    NetworkLease(std::shared_ptr<ScopeTemplate> owner, std::uint64_t id)
        : owner_(std::move(owner)), id_(id) {}
    NetworkLease(const NetworkLease&) = delete;
    NetworkLease& operator=(const NetworkLease&) = delete;
    ~NetworkLease();

  private:
    std::shared_ptr<ScopeTemplate> owner_;
    std::uint64_t id_;
};

struct LaunchedScope {
    // Destroyed after `init`, whose end proves that the scope is empty.
    std::unique_ptr<NetworkLease> network;
    ScopeCgroup cgroup;  // bounds its memory; empty: the init's watch does
    ChildProcess init;
    base::Fd control;
    bool fresh_proc = true;
    std::string policy;
    std::uint32_t process_limit = 0;
    std::uint64_t memory_limit = 0;   // bytes, 0 = none
    bool names_denied_calls = false;  // else a refused call is an errno and nothing more
    Tier tier = Tier::namespaces;
    // Listening on 127.0.0.1 in the scope's network, when the policy has an allow-list.
    base::Fd proxy_listener;
    std::string private_tmp;  // of the landlock tier, in the place of /tmp and /home/gem

    void take(const Policy& limits) {
        policy = limits.name;
        process_limit = limits.processes;
        memory_limit = limits.memory;
    }
    // Asks every process of the scope to be gone; the init's end is the proof. Pid 1 of a namespace
    // takes the rest with it; a supervisor is hung up on, and ends last.
    void end();
};

class Launcher {
  public:
    // `cgroups` may be empty: memory limits are then held by the init's watch.
    explicit Launcher(MakeCgroup cgroups = nullptr) : cgroups_(std::move(cgroups)) {}
    // Starts a template before it is needed: it sets itself up meanwhile.
    void prepare(bool own_network);
    // Error "scope_setup_failed": message and sys_errno say which step and why, and what helps.
    base::Task<base::Result<LaunchedScope>> launch(ScopeSpec spec, base::Deadline deadline);

    // No more scopes: templates begin to end, beside the scopes that are closed now.
    void retire();

  private:
    using TemplatePtr = std::shared_ptr<ScopeTemplate>;

    base::Task<base::Result<LaunchedScope>> try_launch(
        const ScopeSpec& spec, base::Deadline deadline
    );
    // The landlock tier's: a supervisor of its own, no template.
    base::Task<base::Result<LaunchedScope>> launch_supervisor(
        const ScopeSpec& spec, base::Deadline deadline
    );
    [[nodiscard]] base::Result<int> program();
    [[nodiscard]] base::Result<TemplatePtr> start_template(bool own_network);
    [[nodiscard]] base::Result<TemplatePtr> template_for(const ScopeSpec& spec);
    void drop(const TemplatePtr& broken);
    [[nodiscard]] std::string filter(const ScopeSpec& spec);

    MakeCgroup cgroups_;
    base::Fd program_;                  // a sealed memfd, made with the first template
    std::list<TemplatePtr> templates_;  // the latest used first
    std::uint64_t last_id_ = 0;
    std::map<FilterOptions, std::string> filters_;  // each built when first needed
};

// What an operator can do about a failed step; empty when nothing is known.
[[nodiscard]] std::string setup_remedy(const std::string& step, int error);

}  // namespace ars::sandbox
