// The compiled filters, evaluated on paper for every kind of policy: tables of calls and what each
// must be answered. That the kernel runs them is shown elsewhere, with real processes.
#include "sandbox/seccomp_filter.hpp"

#include "tests/unit/sandbox/bpf_interpreter.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <map>
#include <ostream>

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

namespace ars::sandbox {

namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kNative = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kNative = AUDIT_ARCH_AARCH64;
#endif

constexpr std::uint64_t kIoprioOfProcess = 1;  // <linux/ioprio.h> is not C++ everywhere
constexpr std::uint64_t kIoprioOfUser = 3;

constexpr std::uint64_t kHigh = std::uint64_t{1} << 32;
constexpr std::uint64_t kAllHigh = 0xFFFFFFFF00000000ULL;

std::string describe(std::optional<std::uint32_t> verdict) {
    if (!verdict) {
        return "broken program";
    }
    switch (*verdict & SECCOMP_RET_ACTION_FULL) {
        case SECCOMP_RET_ALLOW:
            return "allow";
        case SECCOMP_RET_ERRNO:
            return std::string("errno ") + strerrorname_np(static_cast<int>(*verdict & 0xFFFF));
        default:
            return "another action";
    }
}

struct Variant {
    FilterOptions options;
    BpfInterpreter program;

    [[nodiscard]] std::string verdict(
        std::uint32_t number, std::vector<std::uint64_t> arguments, std::uint32_t arch = kNative
    ) const {
        seccomp_data call{};
        call.nr = static_cast<int>(number);
        call.arch = arch;
        for (std::size_t i = 0; i < arguments.size(); ++i) {
            call.args[i] = arguments[i];
        }
        return describe(program.run(call));
    }
};

std::string name_of(const FilterOptions& options) {
    return std::string(options.tier == Tier::landlock ? "landlock" : "namespaces") +
           (options.network == Network::host ? ", host network" : "") +
           (options.debug ? ", debug" : "") + (options.refuse_set_id ? ", no set-id" : "");
}

const std::vector<Variant>& variants() {
    static const std::vector<Variant> all = [] {
        std::vector<Variant> made;
        for (unsigned bits = 0; bits < 16; ++bits) {
            FilterOptions options;
            options.tier = (bits & 1) != 0 ? Tier::landlock : Tier::namespaces;
            options.network = (bits & 2) != 0 ? Network::host : Network::none;
            options.debug = (bits & 4) != 0;
            options.refuse_set_id = (bits & 8) != 0;
            made.push_back({options, BpfInterpreter(build_seccomp_filter(options))});
        }
        return made;
    }();
    return all;
}

using When = bool (*)(const FilterOptions&);
constexpr When kAlways = [](const FilterOptions&) { return true; };
constexpr When kNever = [](const FilterOptions&) { return false; };
constexpr When kNoDebug = [](const FilterOptions& options) { return !options.debug; };
constexpr When kNoSetId = [](const FilterOptions& options) { return options.refuse_set_id; };
constexpr When kLandlock = [](const FilterOptions& options) {
    return options.tier == Tier::landlock;
};
constexpr When kUnixOnly = [](const FilterOptions& options) {
    return options.tier == Tier::landlock && options.network == Network::none;
};

struct Row {
    const char* what;
    long number;
    std::vector<std::uint64_t> arguments;
    When denied;
    // Arguments that the kernel reads as int: their high bits must change nothing.
    std::vector<std::size_t> ints = {};
};

void check(const std::vector<Row>& rows) {
    for (const Variant& variant : variants()) {
        for (const Row& row : rows) {
            SCOPED_TRACE(name_of(variant.options) + ": " + row.what);
            const std::string wanted = row.denied(variant.options) ? "errno EPERM" : "allow";
            const auto number = static_cast<std::uint32_t>(row.number);
            EXPECT_EQ(variant.verdict(number, row.arguments), wanted);
            for (const std::size_t index : row.ints) {
                for (const std::uint64_t high : {kHigh, kAllHigh}) {
                    auto arguments = row.arguments;
                    arguments[index] |= high;
                    EXPECT_EQ(variant.verdict(number, arguments), wanted) << "high bits";
                }
            }
        }
    }
}

}  // namespace

TEST(SeccompFilter, CallsThatAreAWayOutAreDenied) {
    check({
        {"mount", SYS_mount, {}, kAlways},
        {"umount2", SYS_umount2, {}, kAlways},
        {"pivot_root", SYS_pivot_root, {}, kAlways},
        {"chroot", SYS_chroot, {}, kAlways},
        {"fsopen", SYS_fsopen, {}, kAlways},
        {"fsconfig", SYS_fsconfig, {}, kAlways},
        {"fsmount", SYS_fsmount, {}, kAlways},
        {"fspick", SYS_fspick, {}, kAlways},
        {"move_mount", SYS_move_mount, {}, kAlways},
        {"open_tree", SYS_open_tree, {}, kAlways},
        {"open_tree_attr", 467, {}, kAlways},
        {"mount_setattr", 442, {}, kAlways},
        {"setns", SYS_setns, {}, kAlways},
        {"pidfd_getfd", SYS_pidfd_getfd, {}, kAlways},
        {"kcmp", SYS_kcmp, {}, kAlways},
        {"move_pages", SYS_move_pages, {}, kAlways},
        {"migrate_pages", SYS_migrate_pages, {}, kAlways},
        {"bpf", SYS_bpf, {}, kAlways},
        {"perf_event_open", SYS_perf_event_open, {}, kAlways},
        {"userfaultfd", SYS_userfaultfd, {}, kAlways},
        {"keyctl", SYS_keyctl, {}, kAlways},
        {"add_key", SYS_add_key, {}, kAlways},
        {"request_key", SYS_request_key, {}, kAlways},
        {"fanotify_init", SYS_fanotify_init, {}, kAlways},
        {"lsm_set_self_attr", 460, {}, kAlways},
        {"open_by_handle_at", SYS_open_by_handle_at, {}, kAlways},
        {"name_to_handle_at", SYS_name_to_handle_at, {}, kAlways},
        {"finit_module", SYS_finit_module, {}, kAlways},
        {"kexec_load", SYS_kexec_load, {}, kAlways},
        {"reboot", SYS_reboot, {}, kAlways},
        {"swapon", SYS_swapon, {}, kAlways},
        {"acct", SYS_acct, {}, kAlways},
        {"quotactl", SYS_quotactl, {}, kAlways},
        {"quotactl_fd", 443, {}, kAlways},
        {"syslog", SYS_syslog, {}, kAlways},
        {"clock_settime", SYS_clock_settime, {}, kAlways},
        {"sethostname", SYS_sethostname, {}, kAlways},
#if defined(__x86_64__)
        {"modify_ldt", SYS_modify_ldt, {}, kAlways},
        {"iopl", SYS_iopl, {}, kAlways},
        {"ioperm", SYS_ioperm, {}, kAlways},
#endif
    });
}

TEST(SeccompFilter, OnlyDebugPoliciesMayTrace) {
    check({
        {"ptrace", SYS_ptrace, {}, kNoDebug},
        {"process_vm_readv", SYS_process_vm_readv, {}, kNoDebug},
        {"process_vm_writev", SYS_process_vm_writev, {}, kNoDebug},
        {"process_madvise", 440, {}, kNoDebug},
    });
}

TEST(SeccompFilter, WhatEveryProgramNeedsIsAllowed) {
    check({
        {"read", SYS_read, {}, kNever},
        {"openat", SYS_openat, {0, 0, O_RDWR | O_CREAT, 0644}, kNever},
        {"execve", SYS_execve, {}, kNever},
        {"mmap", SYS_mmap, {}, kNever},
        {"memfd_create", SYS_memfd_create, {}, kNever},
        {"close_range", SYS_close_range, {}, kNever},
        {"pidfd_open", SYS_pidfd_open, {}, kNever},
        {"pidfd_send_signal", SYS_pidfd_send_signal, {}, kNever},
        {"statx", SYS_statx, {}, kNever},
        {"personality without randomisation, as tsan asks", SYS_personality, {0x0040000}, kNever},
        {"landlock_create_ruleset", SYS_landlock_create_ruleset, {}, kNever},
        {"landlock_restrict_self", SYS_landlock_restrict_self, {}, kNever},
        {"a filter of its own", SYS_seccomp, {SECCOMP_SET_MODE_FILTER, 0}, kNever},
        {"which actions are there", SYS_seccomp, {SECCOMP_GET_ACTION_AVAIL, 0}, kNever},
        {"mbind", SYS_mbind, {}, kNever},
        {"io_setup", SYS_io_setup, {}, kNever},
        {"file_setattr, the newest", 469, {}, kNever},
    });
}

TEST(SeccompFilter, C42_NamespaceFlagsAreDeniedWhateverElseIsSet) {
    std::vector<Row> rows{
        {"fork", SYS_clone, {SIGCHLD}, kNever, {0}},
        {"a thread",
         SYS_clone,
         {CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
          CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID},
         kNever,
         {0}},
        {"vfork", SYS_clone, {CLONE_VM | CLONE_VFORK | SIGCHLD}, kNever, {0}},
        {"an exit signal with the bit of CLONE_NEWTIME", SYS_clone, {CLONE_NEWTIME}, kNever, {0}},
        {"unshare files", SYS_unshare, {CLONE_FILES | CLONE_FS | CLONE_SYSVSEM}, kNever, {0}},
        {"unshare time", SYS_unshare, {CLONE_NEWTIME}, kAlways, {0}},
    };
    for (const std::uint64_t flag : std::initializer_list<std::uint64_t>{
             CLONE_NEWNS,
             CLONE_NEWCGROUP,
             CLONE_NEWUTS,
             CLONE_NEWIPC,
             CLONE_NEWUSER,
             CLONE_NEWPID,
             CLONE_NEWNET
         }) {
        rows.push_back({"clone into a namespace", SYS_clone, {flag | SIGCHLD}, kAlways, {0}});
        rows.push_back({"unshare a namespace", SYS_unshare, {flag | CLONE_FS}, kAlways, {0}});
    }
    check(rows);
}

TEST(SeccompFilter, C42_OnlyTheUsualSocketFamiliesAreThere) {
    std::vector<Row> rows{
        {"unix", SYS_socket, {AF_UNIX, SOCK_STREAM, 0}, kNever, {0, 1, 2}},
        {"unix pair", SYS_socketpair, {AF_UNIX, SOCK_STREAM, 0}, kNever, {0}},
        {"inet", SYS_socket, {AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0}, kUnixOnly, {0, 1, 2}},
        {"inet6", SYS_socket, {AF_INET6, SOCK_DGRAM, IPPROTO_UDP}, kUnixOnly, {0, 1, 2}},
        {"mptcp", SYS_socket, {AF_INET, SOCK_STREAM, 262}, kUnixOnly, {0, 1, 2}},
        {"route", SYS_socket, {AF_NETLINK, SOCK_RAW, 0}, kUnixOnly, {0, 1, 2}},
        {"sock_diag", SYS_socket, {AF_NETLINK, SOCK_RAW, 4}, kAlways, {0, 1, 2}},
        {"netfilter", SYS_socket, {AF_NETLINK, SOCK_RAW, 12}, kAlways, {0, 1, 2}},
        {"packets by the old name", SYS_socket, {AF_INET, SOCK_PACKET, 0}, kAlways, {0, 1, 2}},
        {"packets, with flags",
         SYS_socket,
         {AF_INET, SOCK_PACKET | SOCK_NONBLOCK, 0},
         kAlways,
         {0, 1, 2}},
    };
    for (std::uint64_t family = 0; family < AF_MAX; ++family) {
        if (family != AF_UNIX && family != AF_INET && family != AF_INET6 && family != AF_NETLINK) {
            rows.push_back({"an odd family", SYS_socket, {family, SOCK_STREAM, 0}, kAlways, {0}});
            rows.push_back({"an odd pair", SYS_socketpair, {family, SOCK_STREAM, 0}, kAlways, {0}});
        }
    }
    check(rows);
}

TEST(SeccompFilter, C28_TerminalTricksAreDeniedWithHighBitsToo) {
    check({
        {"TIOCSTI", SYS_ioctl, {0, TIOCSTI, 0}, kAlways, {1}},
        {"TIOCLINUX", SYS_ioctl, {0, TIOCLINUX, 0}, kAlways, {1}},
        {"TIOCSETD", SYS_ioctl, {0, TIOCSETD, 0}, kAlways, {1}},
        {"TCGETS", SYS_ioctl, {0, TCGETS, 0}, kNever, {1}},
        {"TIOCSWINSZ", SYS_ioctl, {0, TIOCSWINSZ, 0}, kNever, {1}},
        {"TIOCSCTTY", SYS_ioctl, {0, TIOCSCTTY, 0}, kNever, {1}},
    });
}

TEST(SeccompFilter, SetIdBitsAreDeniedWhereTheWorkspaceHasAnotherOwner) {
    check({
        {"chmod", SYS_fchmod, {3, 0755}, kNever, {1}},
        {"fchmod set-uid", SYS_fchmod, {3, 04755}, kNoSetId, {1}},
        {"fchmod set-gid", SYS_fchmod, {3, 02755}, kNoSetId, {1}},
        {"sticky", SYS_fchmod, {3, 01777}, kNever, {1}},
        {"fchmodat", SYS_fchmodat, {0, 0, 06755}, kNoSetId, {2}},
        {"fchmodat2", 452, {0, 0, 04755, 0}, kNoSetId, {2}},
        {"mknodat", SYS_mknodat, {0, 0, S_IFREG | 04755}, kNoSetId, {2}},
        {"openat creating", SYS_openat, {0, 0, O_WRONLY | O_CREAT, 04755}, kNoSetId, {2, 3}},
        {"openat of a tmpfile", SYS_openat, {0, 0, O_TMPFILE | O_RDWR, 02755}, kNoSetId, {2, 3}},
        {"openat that creates nothing has no mode", SYS_openat, {0, 0, O_RDONLY, 07777}, kNever},
        {"openat of a directory", SYS_openat, {0, 0, O_DIRECTORY, 07777}, kNever},
#if defined(__x86_64__)
        {"chmod by path", SYS_chmod, {0, 04755}, kNoSetId, {1}},
        {"creat", SYS_creat, {0, 04755}, kNoSetId, {1}},
        {"mknod", SYS_mknod, {0, S_IFREG | 02755}, kNoSetId, {1}},
        {"open", SYS_open, {0, O_CREAT, 04755}, kNoSetId, {1, 2}},
#endif
    });
    for (const Variant& variant : variants()) {
        // Its mode is in memory, so it is not there; libc falls back to openat.
        EXPECT_EQ(
            variant.verdict(SYS_openat2, {}),
            variant.options.refuse_set_id ? "errno ENOSYS" : "allow"
        );
    }
}

TEST(SeccompFilter, OtherProcessesAreOutOfReachWithoutOwnNamespaces) {
    check({
        {"own limits", SYS_prlimit64, {0, 7, 0, 0}, kNever, {0}},
        {"limits of the server", SYS_prlimit64, {1234, 7, 1, 0}, kLandlock, {0}},
        {"limits of the highest pid", SYS_prlimit64, {(1 << 22) - 1, 7, 1, 0}, kLandlock, {0}},
        {"own affinity", SYS_sched_setaffinity, {0}, kNever, {0}},
        {"affinity of another", SYS_sched_setaffinity, {2}, kLandlock, {0}},
        {"scheduler of another", SYS_sched_setscheduler, {65536}, kLandlock, {0}},
        {"sched_setparam of another", SYS_sched_setparam, {3}, kLandlock, {0}},
        {"sched_setattr of another", SYS_sched_setattr, {4096}, kLandlock, {0}},
        {"own nice", SYS_setpriority, {PRIO_PROCESS, 0, 10}, kNever, {0, 1}},
        {"own group's nice", SYS_setpriority, {PRIO_PGRP, 0, 10}, kNever, {0, 1}},
        {"nice of another", SYS_setpriority, {PRIO_PROCESS, 7, 10}, kLandlock, {0, 1}},
        {"nice of the whole user", SYS_setpriority, {PRIO_USER, 0, 10}, kAlways, {0, 1}},
        {"own ioprio", SYS_ioprio_set, {kIoprioOfProcess, 0, 0}, kNever, {0, 1}},
        {"ioprio of another", SYS_ioprio_set, {kIoprioOfProcess, 7, 0}, kLandlock, {0, 1}},
        {"ioprio of the user", SYS_ioprio_set, {kIoprioOfUser, 0, 0}, kAlways, {0, 1}},
        {"limits of pid 1", SYS_prlimit64, {1, 7, 1, 0}, kAlways, {0}},
        {"affinity of pid 1", SYS_sched_setaffinity, {1}, kAlways, {0}},
        {"nice of pid 1", SYS_setpriority, {PRIO_PROCESS, 1, 10}, kAlways, {0, 1}},
        {"ioprio of pid 1", SYS_ioprio_set, {kIoprioOfProcess, 1, 0}, kAlways, {0, 1}},
        {"who has which nice", SYS_getpriority, {PRIO_USER, 0}, kNever, {0, 1}},
    });
}

TEST(SeccompFilter, C37_C38_CallsWithAFallBackAreAbsentNotDenied) {
    const std::map<const char*, std::pair<long, std::vector<std::uint64_t>>> absent{
        {"clone3", {435, {}}},
        {"io_uring_setup", {425, {}}},
        {"io_uring_enter", {426, {}}},
        {"io_uring_register", {427, {}}},
        {"memfd_secret", {447, {}}},
        {"statmount", {457, {}}},
        {"listmount", {458, {}}},
        {"listns, newer than the list", {470, {}}},
        {"far future", {1000, {}}},
        {"no call", {-1, {}}},
    };
    for (const Variant& variant : variants()) {
        for (const auto& [what, call] : absent) {
            EXPECT_EQ(
                variant.verdict(static_cast<std::uint32_t>(call.first), call.second), "errno ENOSYS"
            ) << name_of(variant.options)
              << ": " << what;
        }
        const bool unix_only = kUnixOnly(variant.options);
        for (const std::uint64_t protocol :
             std::initializer_list<std::uint64_t>{IPPROTO_SCTP, IPPROTO_DCCP, 115}) {
            for (const std::uint64_t high : {std::uint64_t{0}, kHigh}) {
                EXPECT_EQ(
                    variant.verdict(SYS_socket, {AF_INET, SOCK_STREAM, protocol | high}),
                    unix_only ? "errno EPERM" : "errno EPROTONOSUPPORT"
                );
            }
        }
        if (!unix_only) {
            EXPECT_EQ(
                variant.verdict(SYS_setsockopt, {3, IPPROTO_TCP | kHigh, TCP_ULP}),
                "errno ENOPROTOOPT"
            );
            EXPECT_EQ(variant.verdict(SYS_setsockopt, {3, IPPROTO_TCP, TCP_NODELAY}), "allow");
        }
    }
}

TEST(SeccompFilter, AToolCanNotListenInOurPlace) {
    for (const Variant& variant : variants()) {
        for (const std::uint64_t high : {std::uint64_t{0}, kAllHigh}) {
            EXPECT_EQ(
                variant.verdict(
                    SYS_seccomp,
                    {SECCOMP_SET_MODE_FILTER | high, SECCOMP_FILTER_FLAG_NEW_LISTENER | 1 | high}
                ),
                "errno EBUSY"
            ) << name_of(variant.options);
        }
    }
}

TEST(SeccompFilter, C40_OtherArchitecturesHaveNoCalls) {
    for (const Variant& variant : variants()) {
        for (std::uint32_t number = 0; number < 600; ++number) {
            EXPECT_EQ(variant.verdict(number, {}, AUDIT_ARCH_I386), "errno ENOSYS");
            EXPECT_EQ(variant.verdict(number, {}, AUDIT_ARCH_ARM), "errno ENOSYS");
#if defined(__x86_64__)
            EXPECT_EQ(variant.verdict(number | 0x40000000U, {}), "errno ENOSYS") << "x32";
#endif
        }
    }
}

TEST(SeccompFilter, IsSmallEnoughToBeAttachedForEveryScope) {
    for (const Variant& variant : variants()) {
        if (variant.options.tier == Tier::namespaces) {
            EXPECT_LT(variant.program.size(), 400U) << name_of(variant.options);
        }
    }
}

TEST(SeccompFilter, TheSameOptionsGiveTheSameBytes) {
    FilterOptions options;
    options.debug = true;
    EXPECT_EQ(build_seccomp_filter(options), build_seccomp_filter(options));
}

TEST(SeccompFilter, ItsOptionsFollowTheTierAndThePolicy) {
    Policy policy;
    policy.network = Network::host;
    policy.shared_network = SharedNetwork();
    policy.debug = DebugOwnProcesses();
    const FilterOptions options = filter_options(policy, Tier::landlock);
    EXPECT_EQ(options.tier, Tier::landlock);
    EXPECT_EQ(options.network, Network::host);
    EXPECT_TRUE(options.debug);
    EXPECT_FALSE(filter_options(Policy{}, Tier::namespaces).debug);
}

TEST(SyscallName, EveryDeniedCallHasOne) {
    EXPECT_EQ(syscall_name(SYS_unshare), "unshare");
    EXPECT_EQ(syscall_name(SYS_mount_setattr), "mount_setattr");
    EXPECT_EQ(syscall_name(467), "open_tree_attr");
    EXPECT_EQ(syscall_name(999), "system call 999");
    const BpfInterpreter program(build_seccomp_filter({}));
    for (int number = 0; number <= 469; ++number) {
        seccomp_data call{};
        call.nr = number;
        call.arch = kNative;
        if (describe(program.run(call)) == "errno EPERM") {
            EXPECT_EQ(syscall_name(number).find("system call"), std::string::npos) << number;
        }
    }
}

}  // namespace ars::sandbox
