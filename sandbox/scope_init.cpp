// A scope's set-up, read from top to bottom. The template has made the user namespace, the image's
// part of the root and the network; what is done here belongs to one scope alone. Every step
// reports its own failure to the server by name.
#include "sandbox/scope_init.hpp"

#include "fsmount/layout.hpp"
#include "sandbox/init_loop.hpp"
#include "sandbox/lock_down.hpp"
#include "sandbox/protocol.hpp"

#include <cerrno>
#include <span>
#include <string_view>

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ars::sandbox {

namespace {

struct Setup {
    ScopeStage stage;
    base::Fd proc;            // the scope's own, or the container's where that is all there is
    base::Fd proxy_listener;  // handed to the server
    base::Fd denied_calls;    // the filter's listener, where the kernel gives one
};

struct Step {
    const char* name;
    base::Result<void> (*run)(Setup&);
};

std::unexpected<base::Error> fail_step(const std::string& what) {
    return base::fail_errno("scope_setup_failed", what, errno);
}

base::Result<void> network(Setup& setup) {
    Spaces& spaces = setup.stage.spaces;
    if (!spaces.network) {
        return {};
    }
    if (::setns(spaces.network.get(), CLONE_NEWNET) != 0) {
        return fail_step("setns NEWNET");
    }
    if (::setns(spaces.ipc.get(), CLONE_NEWIPC) != 0) {
        return fail_step("setns NEWIPC");
    }
    spaces = {};
    return {};
}

base::Result<void> open_sources(Setup& setup) {
    return setup.stage.root.open_sources(setup.stage.spec.mounts);
}
base::Result<void> mount_namespace(Setup& setup) { return setup.stage.root.leave_template(); }
base::Result<void> mounts(Setup& setup) {
    return setup.stage.root.mount_all(setup.stage.spec.mounts);
}
base::Result<void> seal_root(Setup& setup) { return setup.stage.root.seal(); }

base::Result<void> open_proc(Setup& setup) {
    setup.proc = base::Fd(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return setup.proc ? base::Result<void>{} : fail_step("open /proc");
}

// A name is a courtesy: some engines' profiles refuse to set one.
base::Result<void> hostname(Setup& setup) {
    const std::string& name = setup.stage.spec.hostname;
    (void)::sethostname(name.data(), name.size());
    return {};
}

base::Result<void> proxy_listener(Setup& setup) {
    if (!setup.stage.spec.proxy_listener) {
        return {};
    }
    base::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int reuse = 1;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(kProxyPort);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (!socket ||
        ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse) != 0 ||
        ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(socket.get(), SOMAXCONN) != 0) {
        return fail_step("listen for the proxy");
    }
    setup.proxy_listener = std::move(socket);
    return {};
}

// A user namespace of the scope's own, below the template's: RLIMIT_NPROC then counts this scope's
// processes only, and nothing in it has a capability over the mounts and the network, which belong
// to the template's.
base::Result<void> user_namespace(Setup& setup) {
    if (::unshare(CLONE_NEWUSER) != 0) {
        return fail_step("unshare NEWUSER");
    }
    // For this moment: the files of a process that is not dumpable belong to root.
    if (::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0) {
        return fail_step("PR_SET_DUMPABLE");
    }
    return map_gem(setup.stage.host_proc, fsmount::kGemUid, fsmount::kGemGid);
}

base::Result<void> limits(Setup& setup) { return set_limits(setup.stage.spec); }
base::Result<void> capabilities(Setup&) { return drop_capabilities(); }
base::Result<void> no_new_privileges(Setup&) { return forbid_new_privileges(); }
base::Result<void> landlock(Setup& setup) { return restrict_shared_network(setup.stage.spec); }

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

base::Result<void> seccomp(Setup& setup) {
    auto listener = attach_filter(setup.stage.spec.seccomp);
    if (!listener) {
        return std::unexpected(listener.error());
    }
    setup.denied_calls = std::move(*listener);
    return {};
}

constexpr Step kSteps[] = {
    {"network", network},
    {"open_sources", open_sources},
    {"mount_namespace", mount_namespace},
    {"mounts", mounts},
    {"seal_root", seal_root},
    {"open_proc", open_proc},
    {"hostname", hostname},
    {"proxy_listener", proxy_listener},
    {"user_namespace", user_namespace},
    {"limits", limits},
    {"capabilities", capabilities},
    {"no_new_privileges", no_new_privileges},
    {"landlock", landlock},
    {"not_dumpable", not_dumpable},
    {"die_with_server", die_with_server},
    {"seccomp", seccomp},
};

void say(Tag tag, int value, std::string_view text, std::span<const int> fds) {
    Message message;
    message.tag = tag;
    message.value = value;
    (void)send_message(kControlFd, message, text, fds);
}

}  // namespace

std::string step_report(const char* step, const std::string& what) {
    std::string text = step;
    text += '\0';
    return text + what;
}

base::Result<void> write_proc_self(
    const base::Fd& proc, const char* name, const std::string& text
) {
    const std::string path = std::string("self/") + name;
    const base::Fd file(::openat(proc.get(), path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!file || ::write(file.get(), text.data(), text.size()) < 0) {
        return fail_step("write /proc/" + path);
    }
    return {};
}

base::Result<void> map_gem(const base::Fd& proc, uid_t outer_uid, gid_t outer_gid) {
    const auto one_id = [](unsigned inside, unsigned outside) {
        return std::to_string(inside) + " " + std::to_string(outside) + " 1\n";
    };
    if (auto mapped = write_proc_self(proc, "uid_map", one_id(fsmount::kGemUid, outer_uid));
        !mapped) {
        return mapped;
    }
    return write_proc_self(proc, "gid_map", one_id(fsmount::kGemGid, outer_gid));
}

void run_scope_init(ScopeStage stage) {
    ::prctl(PR_SET_NAME, "ars-init", 0, 0, 0);
    Setup setup{.stage = std::move(stage), .proc = {}, .proxy_listener = {}, .denied_calls = {}};
    for (const Step& step : kSteps) {
        if (auto done = step.run(setup); !done) {
            say(Tag::step_failed,
                done.error().sys_errno,
                step_report(step.name, done.error().message),
                {});
            ::_exit(1);
        }
    }
    const int listener = setup.proxy_listener.get();
    say(Tag::ready,
        (setup.stage.root.fresh_proc() ? kReadyFreshProc : 0) |
            (setup.denied_calls ? kReadyNamesCalls : 0),
        {},
        {&listener, setup.proxy_listener ? 1U : 0U});
    setup.proxy_listener.reset();
    setup.stage.host_proc.reset();
    run_init_loop(std::move(setup.proc), std::move(setup.denied_calls), setup.stage.spec);
}

}  // namespace ars::sandbox
