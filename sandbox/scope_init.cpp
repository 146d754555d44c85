// A scope's set-up, read from top to bottom: first the stage that the server started, then pid 1.
// Every step reports its own failure to the server by name. Runs in a fresh process of the same
// binary; nothing of the server's memory or environment is here.
#include "base/limits.hpp"
#include "fsmount/layout.hpp"
#include "sandbox/init_loop.hpp"
#include "sandbox/lock_down.hpp"
#include "sandbox/new_root.hpp"
#include "sandbox/protocol.hpp"
#include "sandbox/raw_syscall.hpp"
#include "sandbox/scope.hpp"

#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ars::sandbox {

namespace {

struct Setup {
    InitSpec spec;
    // The ids before the user namespace: inside it, unmapped, they all read as 65534.
    uid_t outer_uid = 0;
    gid_t outer_gid = 0;
    NewRoot root;
    base::Fd proc;
};

struct Step {
    const char* name;
    base::Result<void> (*run)(Setup&);
};

std::unexpected<base::Error> fail_step(const std::string& what) {
    return base::fail_errno("scope_setup_failed", what, errno);
}

void say(Tag tag, int value, std::string_view text = {}) {
    Message message;
    message.tag = tag;
    message.value = value;
    (void)send_message(kControlFd, message, text, {});
}

// --- the stage that the server started: its namespaces become the scope's
// ----------------------------------

base::Result<void> receive_spec(Setup& setup) {
    auto received = receive_message(kControlFd);
    if (!received) {
        return std::unexpected(received.error());
    }
    if (received->message.tag != Tag::setup || received->fds.empty()) {
        return base::fail(base::ErrorKind::internal, "bad_spec", "no set-up message came");
    }
    auto bytes = base::read_to_end(received->fds.front().get(), 16 * base::limits::kMiB);
    if (!bytes) {
        return std::unexpected(bytes.error());
    }
    received->fds.erase(received->fds.begin());
    auto spec = decode_spec(*bytes, std::move(received->fds));
    if (!spec) {
        return std::unexpected(spec.error());
    }
    setup.spec = std::move(*spec);
    return {};
}

// A server that kept root (tests) hands it down; tools never get it.
base::Result<void> drop_root(Setup&) {
    if (::geteuid() != 0) {
        return {};
    }
    if (::setgroups(0, nullptr) != 0) {
        return fail_step("setgroups");
    }
    if (::setresgid(fsmount::kGemGid, fsmount::kGemGid, fsmount::kGemGid) != 0) {
        return fail_step("setresgid");
    }
    if (::setresuid(fsmount::kGemUid, fsmount::kGemUid, fsmount::kGemUid) != 0) {
        return fail_step("setresuid");
    }
    // The change of identity took /proc/self away from us; the id maps are written there.
    if (::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0) {
        return fail_step("PR_SET_DUMPABLE");
    }
    return {};
}

base::Result<void> user_namespace(Setup&) {
    return ::unshare(CLONE_NEWUSER) == 0 ? base::Result<void>{} : fail_step("unshare NEWUSER");
}

base::Result<void> write_proc(const char* path, const std::string& text) {
    auto file = base::open_file(path, O_WRONLY);
    if (!file) {
        return std::unexpected(file.error());
    }
    if (::write(file->get(), text.data(), text.size()) < 0) {
        return fail_step(std::string("write ") + path);
    }
    return {};
}

// One id, gem, is whoever we are outside.
std::string one_id_map(unsigned inside, unsigned outside) {
    return std::to_string(inside) + " " + std::to_string(outside) + " 1\n";
}

base::Result<void> remember_ids(Setup& setup) {
    setup.outer_uid = ::geteuid();
    setup.outer_gid = ::getegid();
    return {};
}

base::Result<void> id_maps(Setup& setup) {
    if (auto denied = write_proc("/proc/self/setgroups", "deny"); !denied) {
        return denied;
    }
    if (auto mapped =
            write_proc("/proc/self/uid_map", one_id_map(fsmount::kGemUid, setup.outer_uid));
        !mapped) {
        return mapped;
    }
    return write_proc("/proc/self/gid_map", one_id_map(fsmount::kGemGid, setup.outer_gid));
}

base::Result<void> namespaces(Setup& setup) {
    const int network = setup.spec.own_network ? CLONE_NEWNET : 0;
    if (::unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP | network) != 0) {
        return fail_step("unshare NEWNS, NEWIPC, NEWUTS, NEWCGROUP, NEWNET");
    }
    return {};
}

// --- pid 1
// ---------------------------------------------------------------------------------------------------

base::Result<void> private_mounts(Setup&) {
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
        return fail_step("make / private");
    }
    return {};
}
base::Result<void> open_sources(Setup& setup) { return setup.root.open_sources(setup.spec.mounts); }
base::Result<void> new_root(Setup& setup) { return setup.root.attach(); }
base::Result<void> mounts(Setup& setup) { return setup.root.mount_all(setup.spec.mounts); }
base::Result<void> pivot_root(Setup& setup) { return setup.root.enter(); }

base::Result<void> open_proc(Setup& setup) {
    setup.proc = base::Fd(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return setup.proc ? base::Result<void>{} : fail_step("open /proc");
}

base::Result<void> loopback(Setup& setup) {
    if (!setup.spec.own_network) {
        return {};
    }
    const base::Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket) {
        return fail_step("socket for lo");
    }
    ifreq request{};
    std::strncpy(request.ifr_name, "lo", IFNAMSIZ - 1);
    if (::ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) {
        return fail_step("SIOCGIFFLAGS lo");
    }
    request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
    if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0) {
        return fail_step("SIOCSIFFLAGS lo");
    }
    return {};
}

base::Result<void> hostname(Setup& setup) {
    const std::string& name = setup.spec.hostname;
    return ::sethostname(name.data(), name.size()) == 0 ? base::Result<void>{}
                                                        : fail_step("sethostname");
}

base::Result<void> limits(Setup& setup) { return set_limits(setup.spec); }
base::Result<void> capabilities(Setup&) { return drop_capabilities(); }
base::Result<void> no_new_privileges(Setup&) { return forbid_new_privileges(); }
base::Result<void> landlock(Setup& setup) { return restrict_shared_network(setup.spec); }

base::Result<void> not_dumpable(Setup&) {
    return ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 ? base::Result<void>{}
                                                     : fail_step("PR_SET_DUMPABLE");
}

// After the last change of credentials, which would clear it. A server that died before this is
// seen as the end of the control socket.
base::Result<void> die_with_server(Setup&) {
    return ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 ? base::Result<void>{}
                                                            : fail_step("PR_SET_PDEATHSIG");
}

base::Result<void> seccomp(Setup& setup) { return attach_filter(setup.spec.seccomp); }

constexpr Step kStageSteps[] = {
    {"receive_spec", receive_spec},
    {"drop_root", drop_root},
    {"remember_ids", remember_ids},
    {"user_namespace", user_namespace},
    {"id_maps", id_maps},
    {"namespaces", namespaces},
};

constexpr Step kInitSteps[] = {
    {"private_mounts", private_mounts},
    {"open_sources", open_sources},
    {"new_root", new_root},
    {"mounts", mounts},
    {"pivot_root", pivot_root},
    {"open_proc", open_proc},
    {"loopback", loopback},
    {"hostname", hostname},
    {"limits", limits},
    {"capabilities", capabilities},
    {"no_new_privileges", no_new_privileges},
    {"landlock", landlock},
    {"not_dumpable", not_dumpable},
    {"die_with_server", die_with_server},
    {"seccomp", seccomp},
};

void run_steps(std::span<const Step> steps, Setup& setup) {
    for (const Step& step : steps) {
        if (auto done = step.run(setup); !done) {
            std::string text = step.name;
            text += '\0';
            text += done.error().message;
            say(Tag::step_failed, done.error().sys_errno, text);
            ::_exit(1);
        }
    }
}

[[noreturn]] void run_scope_init() {
    ::umask(022);
    ::prctl(
        PR_SET_NAME, "ars-init", 0, 0, 0
    );  // started by descriptor number, which would be its name in ps
    ::syscall(SYS_close_range, static_cast<unsigned>(kControlFd + 1), ~0U, 0);
    ::fcntl(kControlFd, F_SETFD, FD_CLOEXEC);
    Setup setup;
    run_steps(kStageSteps, setup);
    // A sibling, not a child: pid 1 is the server's own, which sees its end and can signal it
    // without a race.
    const long init = raw_syscall(SYS_clone, CLONE_NEWPID | CLONE_PARENT | SIGCHLD);
    if (init != 0) {
        if (init > 0) {
            say(Tag::init_pid, static_cast<int>(init));
            ::_exit(0);
        }
        errno = static_cast<int>(-init);
        constexpr std::string_view kText("pid_namespace\0clone NEWPID", 26);
        say(Tag::step_failed, errno, kText);
        ::_exit(1);
    }
    run_steps(kInitSteps, setup);
    say(Tag::ready, setup.root.fresh_proc() ? 1 : 0);
    run_init_loop(std::move(setup.proc));
}

}  // namespace

void become_scope_init_if_asked(int argc, char** argv) {
    if (argc >= 1 && argv[0] == kInitName) {
        run_scope_init();
    }
}

}  // namespace ars::sandbox
