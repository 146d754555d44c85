// Starts scopes: re-executes this binary from a sealed copy of itself, hands it the spec, and waits
// until pid 1 reports that it is ready or which step failed.
#pragma once

#include "base/async.hpp"
#include "base/fd.hpp"
#include "base/result.hpp"
#include "sandbox/scope.hpp"

#include <array>
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

struct LaunchedScope {
    ChildProcess init;
    base::Fd control;
    bool fresh_proc = true;
    Tier tier = Tier::namespaces;
    // Listening on 127.0.0.1 in the scope's network, when the policy has an allow-list.
    base::Fd proxy_listener;
};

class Launcher {
  public:
    // Error "scope_setup_failed": message and sys_errno say which step and why, and what helps.
    base::Task<base::Result<LaunchedScope>> launch(ScopeSpec spec, base::Deadline deadline);

  private:
    [[nodiscard]] base::Result<int> executable();
    [[nodiscard]] base::Result<std::string> filter(bool refuse_set_id);
    base::Fd executable_;  // a sealed memfd, made at the first launch
    std::array<std::string, 2>
        filters_;  // without and with refused set-id bits, built when first needed
};

// What an operator can do about a failed step; empty when nothing is known.
[[nodiscard]] std::string setup_remedy(const std::string& step, int error);

}  // namespace ars::sandbox
