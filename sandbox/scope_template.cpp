#include "sandbox/scope_template.hpp"

#include "base/fd.hpp"
#include "sandbox/lock_down.hpp"
#include "sandbox/network_stock.hpp"
#include "sandbox/new_root.hpp"
#include "sandbox/protocol.hpp"
#include "sandbox/raw_syscall.hpp"
#include "sandbox/scope_init.hpp"

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace ars::sandbox {

namespace {

struct Failure {
    int error = 0;
    std::string report;
};

std::unexpected<base::Error> fail_step(const std::string& what) {
    return base::fail_errno("scope_setup_failed", what, errno);
}

class Template {
  public:
    explicit Template(bool own_network) : own_network_(own_network) {}
    [[noreturn]] void serve();

  private:
    base::Result<void> become_gem() { return drop_root(); }
    base::Result<void> open_host_proc();
    base::Result<void> user_namespace();
    base::Result<void> mount_namespace();
    base::Result<void> new_root();
    base::Result<void> begin_network();
    base::Result<void> die_with_server();
    base::Result<void> mount_image(const Received& setup);
    void fail(const char* step, const base::Error& error);
    void run_steps();
    void set_up(const Received& setup);
    void make_scope(Received received);
    base::Result<void> enter_scope(int control);

    bool own_network_;
    std::optional<Failure> failure_;
    base::Fd host_proc_;
    NewRoot root_;
    NetworkStock networks_{host_proc_};
};

base::Result<void> Template::open_host_proc() {
    host_proc_ = base::Fd(::open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC));
    return host_proc_ ? base::Result<void>{} : fail_step("open /proc");
}

base::Result<void> Template::user_namespace() {
    const uid_t uid = ::geteuid();
    const gid_t gid = ::getegid();
    if (::unshare(CLONE_NEWUSER) != 0) {
        return fail_step("unshare NEWUSER");
    }
    if (auto denied = write_proc_self(host_proc_, "setgroups", "deny"); !denied) {
        return denied;
    }
    return map_gem(host_proc_, uid, gid);
}

base::Result<void> Template::mount_namespace() {
    return ::unshare(CLONE_NEWNS) == 0 ? base::Result<void>{} : fail_step("unshare NEWNS");
}

base::Result<void> Template::new_root() {
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
        return fail_step("make / private");
    }
    return root_.make(host_proc_);
}

// Not before the new root: to let the host's tree go is to wait for each processor, and making a
// network keeps one to itself.
base::Result<void> Template::begin_network() {
    if (!own_network_) {
        return {};
    }
    networks_.begin_first();
    // Who shares root and directory with a thread can't enter a mount namespace.
    return ::unshare(CLONE_FS) == 0 ? base::Result<void>{} : fail_step("unshare FS");
}

// After the last change of credentials, which would clear it.
base::Result<void> Template::die_with_server() {
    if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
        return fail_step("PR_SET_DUMPABLE");
    }
    return ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 ? base::Result<void>{}
                                                            : fail_step("PR_SET_PDEATHSIG");
}

base::Result<void> Template::mount_image(const Received& setup) {
    auto spec = decode_spec(setup.text, {});
    if (!spec) {
        return std::unexpected(spec.error());
    }
    if (auto opened = root_.open_sources(spec->mounts); !opened) {
        return opened;
    }
    return root_.mount_all(spec->mounts);
}

void Template::run_steps() {
    struct Step {
        const char* name;
        base::Result<void> (Template::*run)();
    };
    constexpr Step kSteps[] = {
        {"drop_root", &Template::become_gem},
        {"open_host_proc", &Template::open_host_proc},
        {"user_namespace", &Template::user_namespace},
        {"mount_namespace", &Template::mount_namespace},
        {"new_root", &Template::new_root},
        {"network", &Template::begin_network},
        {"die_with_server", &Template::die_with_server},
    };
    for (const Step& step : kSteps) {
        if (auto done = (this->*step.run)(); !done) {
            return fail(step.name, done.error());
        }
    }
}

void Template::fail(const char* step, const base::Error& error) {
    failure_ = {error.sys_errno, step_report(step, error.message)};
}

void Template::set_up(const Received& setup) {
    if (failure_) {
        return;
    }
    const auto mounted = mount_image(setup);
    // Only now: until here the kernel had time to make it.
    const auto network = own_network_ ? networks_.finish_first() : base::Result<void>{};
    if (!mounted) {
        fail("image", mounted.error());
    } else if (!network) {
        fail("network", network.error());
    }
}

void Template::serve() {
    run_steps();
    for (;;) {
        auto received = receive_message(kControlFd);
        if (!received) {
            ::_exit(0);  // the server is gone
        }
        switch (received->message.tag) {
            case Tag::setup:
                set_up(*received);
                break;
            case Tag::make_scope:
                make_scope(std::move(*received));
                break;
            case Tag::network_free:
                networks_.give_back(received->message.id);
                break;
            default:
                break;
        }
    }
}

// In the new process: nothing of the template stays open in a scope.
base::Result<void> Template::enter_scope(int control) {
    // The control socket takes the number of the template's own, which is thereby closed.
    if (::dup3(control, kControlFd, O_CLOEXEC) < 0) {
        return fail_step("dup3");
    }
    networks_.forget();
    return {};
}

void Template::make_scope(Received received) {
    if (received.fds.empty()) {
        return;
    }
    base::Fd control = std::move(received.fds.front());
    received.fds.erase(received.fds.begin());
    const auto say = [&control](Tag tag, int value, const std::string& text) {
        Message message;
        message.tag = tag;
        message.value = value;
        (void)send_message(control.get(), message, text, {});
    };
    if (failure_) {
        say(Tag::step_failed, failure_->error, failure_->report);
        return;
    }
    auto spec = decode_spec(received.text, std::move(received.fds));
    if (!spec) {
        say(Tag::step_failed, EINVAL, step_report("receive_spec", spec.error().message));
        return;
    }
    Spaces spaces;
    if (own_network_) {
        auto taken = networks_.take(received.message.id);
        if (!taken) {
            say(Tag::step_failed,
                taken.error().sys_errno,
                step_report("network", taken.error().message));
            return;
        }
        spaces = std::move(*taken);
    }
    // A sibling, not a child: pid 1 is the server's own, which sees its end and can signal it
    // without a race.
    constexpr unsigned long kNew =
        CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_PARENT | SIGCHLD;
    const long init = raw_syscall(
        SYS_clone, static_cast<long>(kNew | (own_network_ ? 0UL : std::uint64_t{CLONE_NEWIPC}))
    );
    if (init < 0) {
        networks_.give_back(received.message.id);
        say(Tag::step_failed, static_cast<int>(-init), step_report("pid_namespace", "clone"));
    } else if (init > 0) {
        say(Tag::init_pid, static_cast<int>(init), {});
    } else {
        if (auto entered = enter_scope(control.get()); !entered) {
            say(Tag::step_failed,
                entered.error().sys_errno,
                step_report("pid_namespace", entered.error().message));
            ::_exit(1);
        }
        ScopeStage stage{
            .spec = std::move(*spec),
            .root = std::move(root_),
            .host_proc = std::move(host_proc_),
            .spaces = std::move(spaces)
        };
        control.reset();
        run_scope_init(std::move(stage));
    }
}

}  // namespace

void run_template(bool own_network) { Template(own_network).serve(); }

}  // namespace ars::sandbox
