#include "sandbox/landlock_scope.hpp"

#include "fsmount/layout.hpp"
#include "fsmount/tree_removal.hpp"
#include "sandbox/init_loop.hpp"
#include "sandbox/landlock_rules.hpp"
#include "sandbox/lock_down.hpp"
#include "sandbox/protocol.hpp"
#include "sandbox/raw_syscall.hpp"
#include "sandbox/scope_init.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <span>
#include <string>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ars::sandbox {

namespace {

constexpr int kReapPauseMs = 5;
// The server waits two seconds for our end; what is left of a very large directory by then stays.
constexpr auto kRemovalLimit = std::chrono::milliseconds(1500);

struct Setup {
    InitSpec spec;
    base::Fd supervisor;  // pidfd, for the forker
    base::Fd proc;
    base::Fd denied_calls;
    bool made_tmp = false;
};

struct Step {
    const char* name;
    base::Result<void> (*run)(Setup&);
};

std::unexpected<base::Error> fail_step(const std::string& what) {
    return base::fail_errno("scope_setup_failed", what, errno);
}

void say(Tag tag, int value, std::string_view text) {
    Message message;
    message.tag = tag;
    message.value = value;
    (void)send_message(kControlFd, message, text, {});
}

// --- supervisor ----------------------------------------------------------------------------------

base::Result<void> receive_spec(Setup& setup) {
    const auto received = receive_message(kControlFd);
    if (!received) {
        return std::unexpected(received.error());
    }
    auto spec = decode_spec(received->text, {});
    if (!spec) {
        return std::unexpected(spec.error());
    }
    setup.spec = std::move(*spec);
    return {};
}

base::Result<void> become_gem(Setup&) { return drop_root(); }

base::Result<void> subreaper(Setup&) {
    return ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0 ? base::Result<void>{}
                                                            : fail_step("PR_SET_CHILD_SUBREAPER");
}

base::Result<void> not_dumpable(Setup&) {
    return ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 ? base::Result<void>{}
                                                     : fail_step("PR_SET_DUMPABLE");
}

base::Result<void> capabilities(Setup&) { return clear_capabilities(); }
base::Result<void> no_new_privileges(Setup&) { return forbid_new_privileges(); }
base::Result<void> landlock_signals(Setup&) { return scope_signals(); }

base::Result<void> open_own_pidfd(Setup& setup) {
    setup.supervisor = base::Fd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
    return setup.supervisor ? base::Result<void>{} : fail_step("pidfd_open");
}

// TMPDIR, and below it a HOME that shows what /home/gem shows.
base::Result<void> private_tmp(Setup& setup) {
    const std::string& path = setup.spec.private_tmp;
    const std::string home = path + "/home";
    if (::mkdir(path.c_str(), 0700) != 0) {
        return fail_step("mkdir " + path);
    }
    setup.made_tmp = true;
    if (::mkdir(home.c_str(), 0700) != 0) {
        return fail_step("mkdir " + home);
    }
    for (const std::string_view shown : {fsmount::kUserData, fsmount::kSkills}) {
        const std::string name(shown.substr(fsmount::kHome.size()));
        if (::symlink(shown.data(), (home + name).c_str()) != 0) {
            return fail_step("symlink " + home + name);
        }
    }
    return {};
}

// --- forker --------------------------------------------------------------------------------------

base::Result<void> leave_directory(Setup&) {
    return ::chdir("/") == 0 ? base::Result<void>{} : fail_step("chdir /");
}

base::Result<void> open_proc(Setup& setup) {
    setup.proc = base::Fd(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return setup.proc ? base::Result<void>{} : fail_step("open /proc");
}

// Whether the kernel makes a process under this limit. The hard one stays.
bool may_fork_under(rlim_t limit, rlim_t hard) {
    const rlimit wanted{limit, hard};
    if (::setrlimit(RLIMIT_NPROC, &wanted) != 0) {
        return true;  // nothing to learn
    }
    const long child = raw_syscall(SYS_clone, SIGCHLD);
    if (child == 0) {
        ::_exit(0);
    }
    if (child > 0) {
        ::waitpid(static_cast<pid_t>(child), nullptr, __WALL);
    }
    return child != -EAGAIN;
}

// How many processes the kernel counts for our uid, or up to kClose more. A list from /proc would
// not have those of other containers, and costs more than these few forks.
std::uint32_t count_processes() {
    constexpr rlim_t kClose = 16;
    rlimit now{};
    if (::getrlimit(RLIMIT_NPROC, &now) != 0) {
        return 0;
    }
    rlim_t refused = 0;
    rlim_t allowed = 64;
    while (allowed < now.rlim_max && !may_fork_under(allowed, now.rlim_max)) {
        refused = allowed;
        allowed *= 2;
    }
    while (allowed - refused > kClose) {
        const rlim_t middle = refused + (allowed - refused) / 2;
        (may_fork_under(middle, now.rlim_max) ? allowed : refused) = middle;
    }
    return static_cast<std::uint32_t>(allowed);
}

// RLIMIT_NPROC counts every process of the uid here, the server's and other scopes' too: what this
// scope may have comes on top of what runs now.
base::Result<void> limits(Setup& setup) {
    InitSpec own = setup.spec;
    own.processes += count_processes();
    return set_limits(own);
}

base::Result<void> landlock(Setup& setup) { return enter_domain(setup.spec.access); }
base::Result<void> seccomp(Setup& setup) {
    auto listener = attach_filter(setup.spec.seccomp);
    if (!listener) {
        return std::unexpected(listener.error());
    }
    setup.denied_calls = std::move(*listener);
    return {};
}

constexpr Step kSupervisorSteps[] = {
    {"receive_spec", receive_spec},
    {"drop_root", become_gem},
    {"subreaper", subreaper},
    {"not_dumpable", not_dumpable},
    {"capabilities", capabilities},
    {"no_new_privileges", no_new_privileges},
    {"landlock_signals", landlock_signals},
    {"pidfd", open_own_pidfd},
    {"private_tmp", private_tmp},
};

constexpr Step kForkerSteps[] = {
    {"leave_directory", leave_directory},
    {"open_proc", open_proc},
    {"subreaper", subreaper},
    {"not_dumpable", not_dumpable},
    {"limits", limits},
    {"landlock", landlock},
    {"seccomp", seccomp},
};

bool run_steps(std::span<const Step> steps, Setup& setup) {
    for (const Step& step : steps) {
        if (auto done = step.run(setup); !done) {
            say(Tag::step_failed,
                done.error().sys_errno,
                step_report(step.name, done.error().message));
            return false;
        }
    }
    return true;
}

[[noreturn]] void run_forker(Setup setup) {
    ::prctl(PR_SET_NAME, "ars-init", 0, 0, 0);
    if (!run_steps(kForkerSteps, setup)) {
        ::_exit(1);
    }
    say(Tag::ready, setup.denied_calls ? kReadyNamesCalls : 0, {});
    run_init_loop(
        std::move(setup.proc),
        std::move(setup.denied_calls),
        setup.spec,
        std::move(setup.supervisor)
    );
}

// Until the server hangs up or the forker ends.
void watch(pid_t forker, const base::Fd& ended_children) {
    for (;;) {
        std::array<pollfd, 2> watched{{{kControlFd, 0, 0}, {ended_children.get(), POLLIN, 0}}};
        if (::poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR) {
            return;
        }
        signalfd_siginfo info;
        while (::read(ended_children.get(), &info, sizeof info) > 0) {
        }
        if (watched[0].revents != 0 || ::waitpid(forker, nullptr, WNOHANG | __WALL) != 0) {
            return;
        }
    }
}

// One kill(-1) reaches all that run, and the kernel lets no fork slip past it. Every orphan comes
// to us, so having no child means that nothing is left.
void end_all(const base::Fd& ended_children) {
    for (;;) {
        ::kill(-1, SIGKILL);
        pid_t reaped = 0;
        do {
            reaped = ::waitpid(-1, nullptr, WNOHANG | __WALL);
        } while (reaped > 0);
        if (reaped < 0 && errno == ECHILD) {
            return;
        }
        pollfd child{ended_children.get(), POLLIN, 0};
        ::poll(&child, 1, kReapPauseMs);
        signalfd_siginfo info;
        while (::read(ended_children.get(), &info, sizeof info) > 0) {
        }
    }
}

}  // namespace

void run_landlock_scope() {
    ::prctl(PR_SET_NAME, "ars-supervisor", 0, 0, 0);
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    sigset_t chld;
    ::sigemptyset(&chld);
    ::sigaddset(&chld, SIGCHLD);
    const base::Fd ended_children(::signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK));
    Setup setup;
    if (ended_children && run_steps(kSupervisorSteps, setup)) {
        const long forker = raw_syscall(SYS_clone, SIGCHLD);
        if (forker == 0) {
            run_forker(std::move(setup));
        }
        if (forker < 0) {
            say(Tag::step_failed, static_cast<int>(-forker), step_report("forker", "clone"));
        } else {
            watch(static_cast<pid_t>(forker), ended_children);
            end_all(ended_children);
        }
    }
    // The server learns now that the scope is over; our own end comes after the tidying.
    ::close(kControlFd);
    if (setup.made_tmp) {
        fsmount::remove_tree(setup.spec.private_tmp, base::Deadline::after(kRemovalLimit));
    }
    ::_exit(0);
}

}  // namespace ars::sandbox
