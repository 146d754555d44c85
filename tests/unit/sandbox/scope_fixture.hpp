// Real scopes for tests: a small hand-made mount plan over this machine's /usr, one temporary
// workspace, and a way to run coroutines to their end.
#pragma once

#include "base/async.hpp"
#include "base/digest.hpp"
#include "base/log.hpp"
#include "base/task_group.hpp"
#include "fsmount/layout.hpp"
#include "sandbox/scope.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <linux/landlock.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ars::sandbox::testing {

namespace asio = boost::asio;
using namespace std::chrono_literals;

// A directory of gem's below /tmp, emptied (one level) and removed at the end.
class TemporaryDirectory {
  public:
    TemporaryDirectory() {
        char name[] = "/tmp/ars-sandbox-test-XXXXXX";
        path_ = ::mkdtemp(name);
        (void)::chmod(path_.c_str(), 0755);
        if (::geteuid() == 0) {
            (void)::chown(path_.c_str(), fsmount::kGemUid, fsmount::kGemGid);
        }
    }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    ~TemporaryDirectory() {
        for (const char* name : {"t.txt", "core", "p", "f", "probe", "log", "script", "plain"}) {
            (void)::unlink((path_ + "/" + name).c_str());
        }
        (void)::rmdir(path_.c_str());
    }
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::string path_;
};

inline fsmount::Mount mount(fsmount::MountKind kind, std::string guest, std::string source = {}) {
    fsmount::Mount m;
    m.kind = kind;
    m.guest = std::move(guest);
    m.source = std::move(source);
    return m;
}

inline fsmount::MountPlan small_plan(const std::string& workspace) {
    using enum fsmount::MountKind;
    fsmount::MountPlan plan;
    auto& m = plan.mounts;
    m.push_back(mount(bind, "/usr", "/usr"));
    for (const char* name : {"bin", "lib", "lib64", "sbin"}) {
        m.push_back(mount(symlink, std::string("/") + name, std::string("usr/") + name));
    }
    m.push_back(mount(bind, "/etc", "/etc"));
    m.push_back(mount(proc, "/proc"));
    m.push_back(mount(directory, "/dev"));
    m.push_back(mount(directory, "/dev/pts"));
    m.push_back(mount(devpts, "/dev/pts"));
    for (const char* name : {"null", "zero", "full", "random", "urandom", "tty"}) {
        m.push_back(mount(device, std::string("/dev/") + name, std::string("/dev/") + name));
    }
    m.push_back(mount(symlink, "/dev/ptmx", "pts/ptmx"));
    m.push_back(mount(symlink, "/dev/fd", "/proc/self/fd"));
    for (const char* path : {"/tmp", "/dev/shm"}) {
        m.push_back(mount(directory, path));
        fsmount::Mount t = mount(tmpfs, path);
        t.mode = 01777;
        t.size_bytes = 64 * base::limits::kMiB;
        t.inodes = 4096;
        t.read_only = false;
        m.push_back(t);
    }
    for (const char* path : {"/home", "/home/gem", "/home/gem/user-data"}) {
        m.push_back(mount(directory, path));
    }
    fsmount::Mount data = mount(bind, "/home/gem/user-data", workspace);
    data.read_only = false;
    m.push_back(data);
    return plan;
}

// The same for the landlock tier, where the workspace is at its own path.
inline fsmount::AccessPlan small_access(const std::string& workspace) {
    using enum fsmount::Access;
    fsmount::AccessPlan plan;
    plan.private_tmp = "/tmp/ars-scope-test-" + base::random_uuid();
    plan.rules = {
        {run, "/usr"},
        {run, "/etc"},
        {read, "/proc"},
        {terminal, "/dev/pts"},
        {terminal, "/dev/ptmx"},
        {terminal, "/dev/tty"},
        {list, "/dev"},
        {shared_memory, "/dev/shm"},
        {write, workspace},
        {write, plan.private_tmp},
    };
    for (const char* name : {"null", "zero", "full", "random", "urandom"}) {
        plan.rules.push_back({device, std::string("/dev/") + name});
    }
    return plan;
}

inline ScopeSpec small_spec(const Policy& policy, Tier tier, const std::string& workspace) {
    ScopeSpec spec;
    spec.policy = policy;
    spec.tier = tier;
    if (tier == Tier::landlock) {
        spec.access = small_access(workspace);
    } else {
        spec.mounts = small_plan(workspace);
    }
    return spec;
}

inline Command shell(std::string text, base::milliseconds timeout = 20s) {
    Command command;
    command.argv = {"bash", "-c", std::move(text)};
    command.environment = default_environment();
    command.cwd = std::string(fsmount::kUserData);
    command.timeout = timeout;
    return command;
}

// A sandbox on an io_context of its own. `run(task)` drives it until the task ended and returns its
// value.
class Bench {
  public:
    explicit Bench(IoBackend backend = IoBackend::automatic, SandboxOptions options = {})
        : log_(2, base::LogLevel::off) {
        options.backend = backend;
        auto made = make_sandbox(io_.get_executor(), options, log_);
        if (!made) {
            throw std::runtime_error(made.error().message);
        }
        sandbox_ = std::move(*made);
    }
    Bench(const Bench&) = delete;
    Bench& operator=(const Bench&) = delete;
    ~Bench() { run_void(sandbox_->close()); }

    template <class T>
    T run(base::Task<T> task) {
        std::optional<T> value;
        std::exception_ptr error;
        io_.restart();
        bool done = false;
        asio::co_spawn(io_, std::move(task), [&](std::exception_ptr e, T result) {
            error = e;
            value = std::move(result);
            done = true;
        });
        drive(done);
        if (error) {
            std::rethrow_exception(error);
        }
        return std::move(*value);
    }
    void run_void(base::Task<void> task) {
        std::exception_ptr error;
        io_.restart();
        bool done = false;
        asio::co_spawn(io_, std::move(task), [&](std::exception_ptr e) {
            error = e;
            done = true;
        });
        drive(done);
        if (error) {
            std::rethrow_exception(error);
        }
    }

    base::Result<std::shared_ptr<Scope>> acquire(const std::string& id = "root") {
        const std::string workspace = directory_.path();
        auto spec = [workspace, policy = policy_, tier = tier_]() -> base::Result<ScopeSpec> {
            return small_spec(policy, tier, workspace);
        };
        return run(sandbox_->acquire({"alice", id, policy_.name}, spec));
    }
    std::shared_ptr<Scope> scope(const std::string& id = "root") {
        auto acquired = acquire(id);
        if (!acquired) {
            throw std::runtime_error(acquired.error().message);
        }
        return *acquired;
    }
    Outcome command(Command c, const std::string& id = "root") {
        const auto s = scope(id);
        if (c.cwd == fsmount::kUserData) {
            c.cwd = guest();
        }
        return run(s->run(std::move(c)));
    }
    Outcome sh(std::string text, base::milliseconds timeout = 20s) {
        return command(shell(std::move(text), timeout));
    }

    Sandbox& sandbox() { return *sandbox_; }
    Policy& policy() { return policy_; }
    Tier& tier() { return tier_; }
    // The workspace as tools name it.
    [[nodiscard]] std::string guest() const {
        return tier_ == Tier::landlock ? directory_.path() : std::string(fsmount::kUserData);
    }
    // Copies a program of tests/sandbox_programs into the workspace; its name for tools.
    [[nodiscard]] std::string install(const std::string& program) const {
        const std::string copy = directory_.path() + "/probe";
        std::ifstream from(std::string(ARS_SANDBOX_PROGRAMS) + "/" + program, std::ios::binary);
        std::ofstream(copy, std::ios::binary) << from.rdbuf();
        ::chmod(copy.c_str(), 0755);
        return guest() + "/probe";
    }
    asio::any_io_executor executor() { return io_.get_executor(); }
    const std::string& workspace() const { return directory_.path(); }

  private:
    void drive(const bool& done) {
        while (!done && io_.run_one() > 0) {
        }
    }

    TemporaryDirectory directory_;
    Policy policy_;
    Tier tier_ = Tier::namespaces;
    base::Log log_;
    asio::io_context io_{1};
    std::unique_ptr<Sandbox> sandbox_;
};

// Without a devpts of the scope's own, terminals are there when the host opens /dev/ptmx to all.
inline bool terminals_for_gem() {
    struct stat info{};
    return ::stat("/dev/ptmx", &info) == 0 && (info.st_mode & 0006U) == 0006U;
}

// Whether the kernel lets a process without rights have what the tier is made of. Asked without the
// code under test: where this says yes, a scope that can't be made is a failure.
inline bool host_offers(Tier tier) {
    if (tier == Tier::landlock) {
        return ::syscall(
                   SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION
               ) >= 6;
    }
    const pid_t child = ::fork();
    if (child == 0) {
        const bool works = ::unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET) == 0 &&
                           ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
        ::_exit(works ? 0 : 1);
    }
    int status = 1;
    return child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
}

// The tier is missing on this host: skip, with the reason.
#define ARS_NEEDS_SCOPES(bench)                                                    \
    if (const auto acquired = (bench).acquire(); !acquired) {                      \
        ASSERT_FALSE(host_offers((bench).tier())) << acquired.error().message;     \
        GTEST_SKIP() << "no such tier on this host: " << acquired.error().message; \
    }                                                                              \
    static_assert(true)

}  // namespace ars::sandbox::testing
