#include "sandbox/launcher.hpp"

#include "sandbox/early_template.hpp"
#include "sandbox/init_program.hpp"
#include "sandbox/init_spec.hpp"
#include "sandbox/protocol.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

#include <cerrno>
#include <memory>
#include <vector>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ars::sandbox {

namespace {

namespace asio = boost::asio;

#ifndef MFD_EXEC
constexpr unsigned kMfdExec = 0x0010U;  // Linux 6.3; needed where vm.memfd_noexec is set
#else
constexpr unsigned kMfdExec = MFD_EXEC;
#endif

constexpr std::size_t kTemplates = 4;  // two kinds of network, and images that change
constexpr auto kSendRetry = std::chrono::milliseconds(1);
constexpr auto kLateNews = std::chrono::seconds(1);
constexpr const char* kTemplateGone = "template_gone";  // stays in this file
constexpr const char* kNoCgroup = "no_cgroup";

std::unexpected<base::Error> fail_launch(const std::string& what, int error) {
    return base::fail_errno("scope_setup_failed", what, error);
}

// In memory and sealed: a scope's processes may reach /proc/<pid>/exe of an init, never a file on
// disk.
base::Result<base::Fd> make_program() {
    base::Fd program(::memfd_create(kInitName, MFD_CLOEXEC | MFD_ALLOW_SEALING | kMfdExec));
    if (!program && errno == EINVAL) {
        program = base::Fd(::memfd_create(kInitName, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    }
    // Above the number that the init's control socket takes in the child.
    if (program && program.get() <= kControlFd) {
        program = base::Fd(::fcntl(program.get(), F_DUPFD_CLOEXEC, kControlFd + 1));
    }
    if (!program) {
        return fail_launch("memfd_create", errno);
    }
    if (auto written = base::write_all(program.get(), init_program()); !written) {
        return std::unexpected(written.error());
    }
    if (::fcntl(
            program.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE
        ) != 0) {
        return fail_launch("seal the init's program", errno);
    }
    return program;
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
base::Result<pid_t> spawn_program(int program, int control, std::string role) {
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
    const std::string path = "/proc/self/fd/" + std::to_string(program);
    std::string name(kInitName);
    char* argv[] = {name.data(), role.data(), nullptr};
    char* environment[] = {nullptr};
    pid_t pid = 0;
    const int error =
        ::posix_spawn(&pid, path.c_str(), &files.actions, &files.attributes, argv, environment);
    if (error != 0) {
        return fail_launch("posix_spawn the scope's init", error);
    }
    return pid;
}

InitSpec init_spec(const ScopeSpec& scope, std::string filter, const ScopeCgroup& cgroup) {
    InitSpec spec;
    spec.hostname = scope.hostname;
    spec.own_network = scope.policy.network != Network::host;
    spec.proxy_listener = scope.policy.network == Network::allowlist;
    spec.processes = scope.policy.processes;
    spec.file_size = scope.policy.file_size;
    spec.open_files = scope.policy.open_files;
    spec.cpu_seconds = scope.policy.cpu_seconds;
    spec.memory = cgroup ? 0 : scope.policy.memory;
    spec.mounts = scope.mounts.mounts;
    spec.access = scope.access.rules;
    spec.private_tmp = scope.access.private_tmp;
    spec.seccomp = std::move(filter);
    return spec;
}

std::string encode_image(const fsmount::MountPlan& plan) {
    InitSpec shared;
    if (plan.image) {
        shared.mounts = *plan.image;
    }
    return encode_spec(shared);
}

base::Result<void> send(int socket, Message message, std::string text, std::vector<int> fds) {
    const auto payload = pack_payload(message, text, fds);
    if (!payload) {
        return std::unexpected(payload.error());
    }
    const int error = send_message(socket, message, text, fds);
    if (error == 0) {
        return {};
    }
    const char* const code =
        error == EPIPE || error == ECONNRESET ? kTemplateGone : "scope_setup_failed";
    return base::fail_errno(code, "send to the scopes' template", error);
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

// Reads reports until the init is ready. The template's `init_pid` and the init's own reports come
// in any order.
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
                scope.init.running() ? "scope_setup_failed" : kTemplateGone,
                "the scope's init ended before it was ready (" + received.error().message + ")"
            );
        }
        switch (received->message.tag) {
            case Tag::init_pid:
                scope.init = ChildProcess(received->message.value);
                break;
            case Tag::ready:
                scope.fresh_proc = (received->message.value & kReadyFreshProc) != 0;
                scope.names_denied_calls = (received->message.value & kReadyNamesCalls) != 0;
                if (!received->fds.empty()) {
                    scope.proxy_listener = std::move(received->fds.front());
                }
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

// After a failure: the init may have failed before the template told us its pid, and must be reaped
// all the same. Both have let go of the socket once everything was said.
base::Task<void> find_late_init(int control, LaunchedScope& scope) {
    auto watched = base::duplicate(control);
    if (!watched) {
        co_return;
    }
    auto descriptor = std::make_shared<asio::posix::stream_descriptor>(
        co_await asio::this_coro::executor, watched->release()
    );
    const auto deadline = base::Deadline::after(kLateNews);
    while (!scope.init.running() && co_await wait_readable(descriptor, deadline)) {
        auto received = receive_message(control);
        if (!received && received.error().sys_errno != EAGAIN) {
            co_return;
        }
        if (received && received->message.tag == Tag::init_pid) {
            scope.init = ChildProcess(received->message.value);
        }
    }
}

}  // namespace

base::Result<int> Launcher::program() {
    if (!program_) {
        auto made = make_program();
        if (!made) {
            return std::unexpected(made.error());
        }
        program_ = std::move(*made);
    }
    return program_.get();
}

base::Result<Launcher::TemplatePtr> Launcher::start_template(bool own_network) {
    auto file = program();
    if (!file) {
        return std::unexpected(file.error());
    }
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return fail_launch("socketpair", errno);
    }
    auto made = std::make_shared<ScopeTemplate>();
    made->control = base::Fd(pair[0]);
    const base::Fd theirs(pair[1]);
    auto pid = spawn_program(*file, theirs.get(), own_network ? kOwnNetwork : kSharedNetwork);
    if (!pid) {
        return std::unexpected(pid.error());
    }
    made->process = ChildProcess(*pid);
    made->own_network = own_network;
    templates_.push_front(made);
    if (templates_.size() > kTemplates) {
        templates_.pop_back();
    }
    return made;
}

void Launcher::prepare(bool own_network) {
    EarlyTemplate early = take_early_template();
    if (!early.control || !own_network) {
        (void)start_template(own_network);
        return;
    }
    auto made = std::make_shared<ScopeTemplate>();
    made->process = std::move(early.process);
    made->control = std::move(early.control);
    templates_.push_front(std::move(made));
}

// The template that shows the same image with the same kind of network. A socket or a mount that
// came into the image since then makes another one.
base::Result<Launcher::TemplatePtr> Launcher::template_for(const ScopeSpec& spec) {
    const bool own_network = spec.policy.network != Network::host;
    std::string image;  // encoded once, and only for a plan that is new
    for (auto found = templates_.begin(); found != templates_.end(); ++found) {
        const TemplatePtr& one = *found;
        if (one->own_network != own_network || !one->asked) {
            continue;
        }
        if (one->latest != spec.mounts.image) {
            image = image.empty() ? encode_image(spec.mounts) : std::move(image);
            if (one->image != image) {
                continue;
            }
            one->latest = spec.mounts.image;
        }
        templates_.splice(templates_.begin(), templates_, found);
        return templates_.front();
    }
    TemplatePtr fresh;
    for (const TemplatePtr& one : templates_) {
        if (one->own_network == own_network && !one->asked) {
            fresh = one;
        }
    }
    if (!fresh) {
        auto started = start_template(own_network);
        if (!started) {
            return started;
        }
        fresh = std::move(*started);
    }
    image = image.empty() ? encode_image(spec.mounts) : std::move(image);
    Message message;
    message.tag = Tag::setup;
    if (auto sent = send(fresh->control.get(), message, image, {}); !sent) {
        drop(fresh);
        return std::unexpected(sent.error());
    }
    fresh->asked = true;
    fresh->image = std::move(image);
    fresh->latest = spec.mounts.image;
    return fresh;
}

void Launcher::retire() {
    for (const TemplatePtr& one : templates_) {
        ::shutdown(one->control.get(), SHUT_RDWR);
    }
}

void Launcher::drop(const TemplatePtr& broken) { templates_.remove(broken); }

std::string Launcher::filter(const ScopeSpec& spec) {
    FilterOptions options = filter_options(spec.policy, spec.tier);
    options.refuse_set_id = spec.mounts.idmapped;
    std::string& built = filters_[options];
    if (built.empty()) {
        built = build_seccomp_filter(options);
    }
    return built;
}

base::Task<base::Result<LaunchedScope>> Launcher::try_launch(
    const ScopeSpec& scope, base::Deadline deadline
) {
    auto origin = template_for(scope);
    if (!origin) {
        co_return std::unexpected(origin.error());
    }
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        co_return fail_launch("socketpair", errno);
    }
    base::Fd ours(pair[0]);
    base::Fd theirs(pair[1]);
    LaunchedScope launched;
    launched.take(scope.policy);
    launched.cgroup = cgroup_of(scope.policy, cgroups_, ++last_id_);
    const InitSpec spec = init_spec(scope, filter(scope), launched.cgroup);
    std::vector<int> fds{theirs.get()};
    for (const fsmount::Mount& mount : spec.mounts) {
        if (mount.fd) {
            fds.push_back(mount.fd->get());
        }
    }
    Message message;
    message.tag = Tag::make_scope;
    message.id = ++last_id_;
    const std::string text = encode_spec(spec);
    auto sent = send((*origin)->control.get(), message, text, fds);
    while (!sent && sent.error().sys_errno == EAGAIN && !deadline.passed()) {
        co_await base::sleep_until(base::Deadline::after(kSendRetry));
        sent = send((*origin)->control.get(), message, text, fds);
    }
    theirs.reset();
    launched.network = std::make_unique<NetworkLease>(*origin, message.id);
    auto ready = sent ? co_await follow_setup(ours.get(), deadline, launched) : std::move(sent);
    if (!ready) {
        // Its next scope may fail alike; a new one is made of what the host gives then.
        drop(*origin);
        co_await find_late_init(ours.get(), launched);
        co_return std::unexpected(ready.error());  // what still runs is killed and reaped here
    }
    // Before its first command; what the init starts follows it.
    if (launched.cgroup) {
        if (auto added = launched.cgroup.add(launched.init.pid()); !added) {
            co_return std::unexpected(added.error());
        }
    }
    // Waiting on it made it non-blocking, which a ring would take for "do not wait".
    ::fcntl(ours.get(), F_SETFL, 0);
    launched.control = std::move(ours);
    co_return launched;
}

base::Task<base::Result<LaunchedScope>> Launcher::launch_supervisor(
    const ScopeSpec& scope, base::Deadline deadline
) {
    auto file = program();
    if (!file) {
        co_return std::unexpected(file.error());
    }
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        co_return fail_launch("socketpair", errno);
    }
    LaunchedScope launched;
    launched.tier = scope.tier;
    launched.private_tmp = scope.access.private_tmp;
    launched.take(scope.policy);
    launched.control = base::Fd(pair[0]);
    base::Fd theirs(pair[1]);
    auto pid = spawn_program(*file, theirs.get(), kSupervisor);
    if (!pid) {
        co_return std::unexpected(pid.error());
    }
    launched.init = ChildProcess(*pid);
    theirs.reset();
    launched.cgroup = cgroup_of(scope.policy, cgroups_, ++last_id_);
    if (launched.cgroup && !launched.cgroup.add(*pid)) {
        launched.cgroup = ScopeCgroup();
    }
    const InitSpec spec = init_spec(scope, filter(scope), launched.cgroup);
    Message message;
    message.tag = Tag::setup;
    auto ready = send(launched.control.get(), message, encode_spec(spec), {});
    if (ready) {
        ready = co_await follow_setup(launched.control.get(), deadline, launched);
    }
    if (!ready) {
        launched.end();
        co_await launched.init.wait_end(deadline);
        co_return std::unexpected(ready.error());
    }
    // As above: a ring would take non-blocking for "do not wait".
    ::fcntl(launched.control.get(), F_SETFL, 0);
    co_return launched;
}

base::Task<base::Result<LaunchedScope>> Launcher::launch(ScopeSpec spec, base::Deadline deadline) {
    if (spec.tier == Tier::landlock) {
        co_return co_await launch_supervisor(spec, deadline);
    }
    auto launched = co_await try_launch(spec, deadline);
    // A template that was killed meanwhile says nothing; it was dropped, and another one is made.
    // Where an init can't be moved into its cgroup, the next one has its watch.
    const bool no_cgroup = !launched && launched.error().code == kNoCgroup;
    if (no_cgroup) {
        cgroups_ = nullptr;
    }
    if (no_cgroup || (!launched && launched.error().code == kTemplateGone)) {
        launched = co_await try_launch(spec, deadline);
        if (!launched) {
            launched.error().code = "scope_setup_failed";
        }
    }
    co_return launched;
}

}  // namespace ars::sandbox
