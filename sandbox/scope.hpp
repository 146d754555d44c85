// The room's front door: scopes (one sandbox per execution tree) and the commands that run in them.
//
// A scope is made once (namespaces, mounts, seccomp; pid 1 is ours) and stays warm; a command is
// one message to its init. Nothing here outlives the server: every init dies with it.
#pragma once

#include "base/async.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "base/result.hpp"
#include "fsmount/access_plan.hpp"
#include "fsmount/mount_plan.hpp"
#include "sandbox/cgroup.hpp"
#include "sandbox/command.hpp"
#include "sandbox/outcome.hpp"
#include "sandbox/policy.hpp"
#include "sandbox/process.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ars::sandbox {

struct ScopeSpec {
    Policy policy;
    fsmount::MountPlan mounts;
    std::string hostname = "ars";
    Tier tier = Tier::namespaces;
    fsmount::AccessPlan access{};  // of the landlock tier, in the place of `mounts`
};

class Scope {
  public:
    virtual ~Scope() = default;
    [[nodiscard]] virtual std::uint64_t generation() const = 0;
    [[nodiscard]] virtual bool alive() const = 0;
    // Runs one command to its end. Several at once are the normal case. When the caller is
    // cancelled the command's whole tree is killed first, then operation_aborted is thrown.
    virtual base::Task<Outcome> run(Command command) = 0;
    // Starts one command and leaves it running: the scope sees to its time limit and remembers it
    // (the last limits::kRememberedCommands that ended). Errors: "scope_gone", "scope_busy" (over
    // limits::kCommandsPerScope), "bad_command". A program that can't be executed is an outcome.
    // When the caller is cancelled before this returns, nothing is left running.
    virtual base::Task<base::Result<std::shared_ptr<Process>>> start(Command command) = 0;
    // Null for an id that was never given or is forgotten.
    [[nodiscard]] virtual std::shared_ptr<Process> find(const std::string& id) const = 0;
    // The started commands that are running or remembered, oldest first.
    [[nodiscard]] virtual std::vector<std::shared_ptr<Process>> processes() const = 0;
    // What commands that are over left running.
    virtual base::Task<std::vector<BackgroundProcess>> background() = 0;
    // Kills every process and proves it.
    virtual base::Task<void> close() = 0;
};

struct ScopeKey {
    std::string uid;
    std::string scope_id;  // the root thread's id
    std::string policy;    // Policy::name
    auto operator<=>(const ScopeKey&) const = default;
};

// How the server reads its children's pipes. `automatic` takes io_uring where it works.
enum class IoBackend : std::uint8_t { automatic, io_uring, epoll };

struct SandboxOptions {
    base::milliseconds idle_release = base::limits::kScopeIdleRelease;
    std::uint32_t max_scopes = base::limits::kScopes;
    IoBackend backend = IoBackend::automatic;
    // The kind of network that the first scope is expected to want: prepared meanwhile.
    Network expected = Network::none;
    Tier expected_tier = Tier::namespaces;  // the other one prepares nothing
    // Who is asked for the addresses of allowed hosts: "127.0.0.1:5353,[::1]:53"; empty: those of
    // /etc/resolv.conf.
    std::string name_servers;
    // Of a server whose cgroup v2 is delegated to it; empty: memory limits are held by a watch.
    MakeCgroup cgroups{};
};

// Of the proxies of all scopes with `allowed_hosts`.
struct EgressCounts {
    std::uint64_t connections = 0;   // ever accepted
    std::uint64_t refused = 0;       // requests answered with a 4xx
    std::uint64_t denied_hosts = 0;  // those of them whose host is not allowed
    std::uint32_t open = 0;
};

// What happened in all scopes since the start.
struct SandboxCounters {
    // By system call, once per command that tried it; a bounded number of names.
    std::map<std::string, std::uint64_t> denied_calls;
    std::map<std::string, std::uint64_t> commands;  // that are over, by how they ended
    std::uint64_t oom_kills = 0;                    // commands killed for their memory
    EgressCounts egress;
};

// All scopes of the appliance. Used on its executor only.
class Sandbox {
  public:
    virtual ~Sandbox() = default;
    // The warm scope of `key`, or a new one made from `spec()` (called only then). Error
    // "scopes_full" when over the limit, "scope_setup_failed" naming step and errno.
    virtual base::Task<base::Result<std::shared_ptr<Scope>>> acquire(
        ScopeKey key, std::function<base::Result<ScopeSpec>()> spec
    ) = 0;
    virtual base::Task<void> release(ScopeKey key) = 0;
    virtual base::Task<void> close() = 0;  // every scope; call before destruction
    [[nodiscard]] virtual std::size_t size() const = 0;
    [[nodiscard]] virtual const SandboxCounters& counters() const = 0;
    [[nodiscard]] virtual std::string backend() const = 0;  // "io_uring" or "epoll"
};

// Chooses the child-I/O backend by trying. Call after privileges are dropped.
[[nodiscard]] base::Result<std::unique_ptr<Sandbox>> make_sandbox(
    boost::asio::any_io_executor executor, SandboxOptions options, const base::Log& log
);

}  // namespace ars::sandbox
