#include "sandbox/launcher.hpp"

#include "sandbox/protocol.hpp"
#include "sandbox/seccomp_filter.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

#include <cerrno>
#include <memory>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ars::sandbox {

namespace {

namespace asio = boost::asio;

#ifndef MFD_EXEC
constexpr unsigned kMfdExec = 0x0010U;  // Linux 6.3; needed where vm.memfd_noexec is set
#else
constexpr unsigned kMfdExec = MFD_EXEC;
#endif

std::unexpected<base::Error> fail_launch(const std::string& what, int error) {
    return base::fail_errno("scope_setup_failed", what, error);
}

// A copy that nobody can change: a scope's processes may reach /proc/<pid>/exe of an init, never
// the binary on disk.
base::Result<base::Fd> copy_executable() {
    auto self = base::open_file("/proc/self/exe", O_RDONLY);
    if (!self) {
        return fail_launch(
            "open /proc/self/exe (the binary must be readable by uid 1000)", self.error().sys_errno
        );
    }
    base::Fd copy(::memfd_create(kInitName.data(), MFD_CLOEXEC | MFD_ALLOW_SEALING | kMfdExec));
    if (!copy && errno == EINVAL) {
        copy = base::Fd(::memfd_create(kInitName.data(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
    }
    struct stat info{};
    if (!copy || ::fstat(self->get(), &info) != 0) {
        return fail_launch("memfd_create", errno);
    }
    off_t done = 0;
    while (done < info.st_size) {
        const auto rest = static_cast<std::size_t>(info.st_size - done);
        if (::sendfile(copy.get(), self->get(), &done, rest) <= 0) {
            return fail_launch("copy the binary", errno);
        }
    }
    if (::fcntl(
            copy.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE
        ) != 0) {
        return fail_launch("seal the binary's copy", errno);
    }
    return copy;
}

struct SpawnFiles {
    posix_spawn_file_actions_t actions{};
    posix_spawnattr_t attributes{};
    SpawnFiles() {
        ::posix_spawn_file_actions_init(&actions);
        ::posix_spawnattr_init(&attributes);
    }
    SpawnFiles(const SpawnFiles&) = delete;
    SpawnFiles& operator=(const SpawnFiles&) = delete;
    ~SpawnFiles() {
        ::posix_spawn_file_actions_destroy(&actions);
        ::posix_spawnattr_destroy(&attributes);
    }
};

// Signals as in a new login, no environment, /dev/null as 0, 1, 2, and the control socket as 3.
base::Result<pid_t> spawn_stage(int executable, int control) {
    SpawnFiles files;
    ::posix_spawn_file_actions_addopen(&files.actions, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&files.actions, 1, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_addopen(&files.actions, 2, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_adddup2(&files.actions, control, kControlFd);
    sigset_t all;
    sigset_t none;
    ::sigfillset(&all);
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigdefault(&files.attributes, &all);
    ::posix_spawnattr_setsigmask(&files.attributes, &none);
    ::posix_spawnattr_setflags(
        &files.attributes,
        static_cast<short>(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID)
    );
    const std::string path = "/proc/self/fd/" + std::to_string(executable);
    std::string name(kInitName);
    char* argv[] = {name.data(), nullptr};
    char* environment[] = {nullptr};
    pid_t pid = 0;
    const int error =
        ::posix_spawn(&pid, path.c_str(), &files.actions, &files.attributes, argv, environment);
    if (error != 0) {
        return fail_launch("posix_spawn the scope's init", error);
    }
    return pid;
}

InitSpec init_spec(const ScopeSpec& scope, std::string filter) {
    InitSpec spec;
    spec.hostname = scope.hostname;
    spec.own_network = scope.policy.network != Network::host;
    spec.processes = scope.policy.processes;
    spec.file_size = scope.policy.file_size;
    spec.open_files = scope.policy.open_files;
    spec.mounts = scope.mounts.mounts;
    spec.seccomp = std::move(filter);
    return spec;
}

base::Result<void> send_spec(int control, const InitSpec& spec) {
    auto file = memory_file("ars-scope-spec", encode_spec(spec));
    if (!file) {
        return std::unexpected(file.error());
    }
    std::vector<int> fds{file->get()};
    for (const fsmount::Mount& mount : spec.mounts) {
        if (mount.fd) {
            fds.push_back(mount.fd->get());
        }
    }
    Message message;
    message.tag = Tag::setup;
    if (const int error = send_message(control, message, {}, fds); error != 0) {
        return fail_launch("send the scope's spec", error);
    }
    return {};
}

base::Error step_error(const Received& report) {
    const std::size_t cut = std::min(report.text.find('\0'), report.text.size());
    const std::string step = report.text.substr(0, cut);
    std::string message = "scope set-up failed at step " + step;
    if (cut < report.text.size()) {
        message += ": " + report.text.substr(cut + 1);
    }
    if (const std::string remedy = setup_remedy(step, report.message.value); !remedy.empty()) {
        message += ". " + remedy;
    }
    return {
        base::ErrorKind::unavailable, "scope_setup_failed", std::move(message), report.message.value
    };
}

// Waits until the init's socket can be read; false when the deadline passed.
base::Task<bool> wait_readable(
    std::shared_ptr<asio::posix::stream_descriptor> descriptor, base::Deadline deadline
) {
    asio::steady_timer timer(co_await asio::this_coro::executor);
    timer.expires_at(deadline.at);
    auto on_deadline = [descriptor](const boost::system::error_code& error) {
        if (!error) {
            boost::system::error_code ignored;
            descriptor->cancel(ignored);
        }
    };
    timer.async_wait(on_deadline);
    const auto [error] = co_await descriptor->async_wait(
        asio::posix::stream_descriptor::wait_read, asio::as_tuple(asio::use_awaitable)
    );
    timer.cancel();
    co_return !error;
}

// Reads reports until the init is ready. The stage's `init_pid` and the init's own reports come in
// any order.
base::Task<base::Result<void>> follow_setup(
    int control, base::Deadline deadline, LaunchedScope& scope
) {
    auto watched = base::duplicate(control);
    if (!watched) {
        co_return std::unexpected(watched.error());
    }
    auto descriptor = std::make_shared<asio::posix::stream_descriptor>(
        co_await asio::this_coro::executor, watched->release()
    );
    bool ready = false;
    while (!ready || !scope.init.running()) {
        if (!co_await wait_readable(descriptor, deadline)) {
            co_return base::fail(
                base::ErrorKind::timeout,
                "scope_setup_failed",
                "scope set-up took too long: is a mounted file system below / not answering?"
            );
        }
        auto received = receive_message(control);
        if (!received && received.error().sys_errno == EAGAIN) {
            continue;  // readiness may be reported twice, and the wait has made the socket
                       // non-blocking
        }
        if (!received) {
            co_return base::fail(
                base::ErrorKind::unavailable,
                "scope_setup_failed",
                "the scope's init ended before it was ready (" + received.error().message + ")"
            );
        }
        switch (received->message.tag) {
            case Tag::init_pid:
                scope.init = ChildProcess(received->message.value);
                break;
            case Tag::ready:
                scope.fresh_proc = received->message.value == 1;
                ready = true;
                break;
            case Tag::step_failed:
                co_return std::unexpected(step_error(*received));
            default:
                break;
        }
    }
    co_return base::Result<void>{};
}

// After a failure: the init may have failed before the stage told us its pid, and must be reaped
// all the same.
void find_late_init(int control, LaunchedScope& scope) {
    pollfd readable{control, POLLIN, 0};
    while (!scope.init.running() && ::poll(&readable, 1, 0) > 0) {
        auto received = receive_message(control);
        if (!received) {
            return;
        }
        if (received->message.tag == Tag::init_pid) {
            scope.init = ChildProcess(received->message.value);
        }
    }
}

}  // namespace

base::Result<int> Launcher::executable() {
    if (!executable_) {
        auto copy = copy_executable();
        if (!copy) {
            return std::unexpected(copy.error());
        }
        executable_ = std::move(*copy);
    }
    return executable_.get();
}

base::Result<std::string> Launcher::filter(bool refuse_set_id) {
    std::string& built = filters_[refuse_set_id ? 1 : 0];
    if (built.empty()) {
        auto made = build_seccomp_filter({.refuse_set_id = refuse_set_id});
        if (!made) {
            return std::unexpected(made.error());
        }
        built = std::move(*made);
    }
    return built;
}

base::Task<base::Result<LaunchedScope>> Launcher::launch(ScopeSpec scope, base::Deadline deadline) {
    auto binary = executable();
    if (!binary) {
        co_return std::unexpected(binary.error());
    }
    auto seccomp = filter(scope.mounts.idmapped);
    if (!seccomp) {
        co_return std::unexpected(seccomp.error());
    }
    const InitSpec spec = init_spec(scope, std::move(*seccomp));
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        co_return fail_launch("socketpair", errno);
    }
    base::Fd ours(pair[0]);
    base::Fd theirs(pair[1]);
    if (auto sent = send_spec(ours.get(), spec); !sent) {
        co_return std::unexpected(sent.error());
    }
    auto stage_pid = spawn_stage(*binary, theirs.get());
    if (!stage_pid) {
        co_return std::unexpected(stage_pid.error());
    }
    theirs.reset();
    ChildProcess stage(*stage_pid);
    LaunchedScope launched;
    auto ready = co_await follow_setup(ours.get(), deadline, launched);
    // The stage ended before the init reported, or is about to.
    co_await stage.wait_end(deadline);
    if (!ready) {
        find_late_init(ours.get(), launched);
        co_return std::unexpected(ready.error());  // what still runs is killed and reaped here
    }
    // Waiting on it made it non-blocking, which a ring would take for "do not wait".
    ::fcntl(ours.get(), F_SETFL, 0);
    launched.control = std::move(ours);
    co_return launched;
}

std::string setup_remedy(const std::string& step, int error) {
    if (step == "user_namespace" || step == "id_maps") {
        if (error == ENOSPC) {
            return "Raise the sysctl user.max_user_namespaces";
        }
        return "User namespaces are refused here. In Docker: --security-opt seccomp=<the profile "
               "in images/>, or "
               "seccomp=unconfined; on Ubuntu 24.04 hosts: an AppArmor profile with `userns`, or "
               "sysctl "
               "kernel.apparmor_restrict_unprivileged_userns=0; in Kubernetes: a Localhost seccomp "
               "profile";
    }
    if (step == "namespaces" || step == "pid_namespace") {
        return "The engine's seccomp profile or AppArmor refuses namespaces: use the profile in "
               "images/";
    }
    if (step == "private_mounts" || step == "new_root" || step == "mounts" ||
        step == "pivot_root") {
        if (error == EPERM || error == EACCES) {
            return "Mounting is refused: use the seccomp profile in images/ and --security-opt "
                   "apparmor=unconfined (or a profile that allows mount and pivot_root)";
        }
        if (error == ENOSYS) {
            return "Linux 5.12 or newer is needed";
        }
    }
    if (step == "open_sources" && error == EACCES) {
        return "uid 1000 must be able to reach this path (x on every directory above it)";
    }
    return {};
}

}  // namespace ars::sandbox
