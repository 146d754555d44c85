#include "sandbox/call_probes.hpp"

#include "base/fd.hpp"
#include "sandbox/cgroup.hpp"
#include "sandbox/child_io.hpp"
#include "sandbox/landlock_rules.hpp"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ars::sandbox {

namespace {

using namespace std::chrono_literals;

constexpr auto kLook = 2ms;

Probe failing(const char* name, int error, std::string detail, std::string remedy) {
    return {name, false, error, std::move(detail) + ": " + std::strerror(error), std::move(remedy)};
}

Probe probe_landlock() {
    const int abi = landlock_abi();
    if (abi < 0) {
        return failing(
            "landlock",
            -abi,
            "landlock_create_ruleset",
            -abi == EOPNOTSUPP ? "boot the host with lsm=landlock,..."
                               : "Linux 5.13 or newer with CONFIG_SECURITY_LANDLOCK, and a seccomp "
                                 "profile that allows landlock_*"
        );
    }
    Probe probe{"landlock", abi >= kLandlockScopedAbi, 0, "ABI " + std::to_string(abi), {}};
    if (!probe.works) {
        probe.remedy = "signals and abstract sockets are scoped from ABI 6 on (Linux 6.12)";
    }
    return probe;
}

Probe probe_io_uring() {
    const int error = try_io_uring();
    if (error != 0) {
        return failing(
            "io_uring",
            error,
            "io_uring_setup",
            "not needed: epoll takes its place. To have it: a seccomp profile that allows "
            "io_uring_*, and "
            "sysctl kernel.io_uring_disabled=0"
        );
    }
    return {"io_uring", true, 0, "a ring did one operation", {}};
}

Probe probe_openat2() {
    open_how how{};
    how.flags = O_PATH | O_CLOEXEC | O_DIRECTORY;
    how.resolve = RESOLVE_BENEATH;
    const base::Fd root(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    const base::Fd fd(static_cast<int>(::syscall(SYS_openat2, root.get(), "usr", &how, sizeof how))
    );
    if (!fd) {
        return failing(
            "openat2", errno, "openat2", "Linux 5.6, and a seccomp profile that knows it"
        );
    }
    return {"openat2", true, 0, "RESOLVE_BENEATH", {}};
}

Probe probe_pidfd() {
    const base::Fd fd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
    if (!fd) {
        return failing(
            "pidfd", errno, "pidfd_open", "Linux 5.3, and a seccomp profile that knows it"
        );
    }
    return {"pidfd", true, 0, "pidfd_open", {}};
}

// What `ars serve` would take; other commands leave the cgroup that they are called in alone.
Probe probe_cgroup() {
    constexpr const char* kRemedy =
        "not needed: without it memory limits are a watch and the others rlimits. To have it: "
        "cgroup v2 with the memory and pids controllers, writable, in a cgroup namespace of the "
        "container's own or a systemd unit with Delegate=yes";
    const auto directory = CgroupTree::find();
    if (!directory) {
        return {"cgroup", false, directory.error().sys_errno, directory.error().message, kRemedy};
    }
    return {"cgroup", true, 0, "ars serve bounds memory in " + *directory, {}};
}

// The filter allows everything and is this thread's alone.
Probe probe_listener() {
    sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const sock_fprog program{1, &allow};
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    const base::Fd listener(static_cast<int>(
        ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program)
    ));
    if (!listener) {
        return failing(
            "seccomp_listener",
            errno,
            "seccomp with NEW_LISTENER",
            "not needed: refused calls are errnos then, without a name in the outcome. To have it: "
            "an engine that has no listener of its own, and a profile that allows seccomp"
        );
    }
    return {"seccomp_listener", true, 0, "refused calls can be named", {}};
}

struct NamedProbe {
    const char* name;
    Probe (*run)();
};
constexpr NamedProbe kProbes[] = {
    {"landlock", probe_landlock},
    {"seccomp_listener", probe_listener},
    {"io_uring", probe_io_uring},
    {"openat2", probe_openat2},
    {"pidfd", probe_pidfd},
    {"cgroup", probe_cgroup},
};

struct Running {
    Probe answer;
    std::atomic<bool> done = false;
};

}  // namespace

base::Task<std::vector<Probe>> probe_calls(base::Deadline deadline) {
    std::vector<std::shared_ptr<Running>> all;
    for (const NamedProbe& probe : kProbes) {
        auto running = std::make_shared<Running>();
        all.push_back(running);
        std::thread([running, run = probe.run] {
            running->answer = run();
            running->done = true;
        }).detach();
    }
    std::vector<Probe> answers;
    for (std::size_t i = 0; i < all.size(); ++i) {
        while (!all[i]->done && !deadline.passed()) {
            co_await base::sleep_until(base::Deadline::after(kLook));
        }
        answers.push_back(
            all[i]->done ? std::move(all[i]->answer)
                         : failing(
                               kProbes[i].name,
                               ETIMEDOUT,
                               "no answer",
                               "a file system below / or /sys does not answer: unmount it"
                           )
        );
    }
    co_return answers;
}

}  // namespace ars::sandbox
