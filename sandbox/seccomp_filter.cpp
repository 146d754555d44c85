#include "sandbox/seccomp_filter.hpp"

#include "sandbox/seccomp_program.hpp"

#include <seccomp.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <memory>

#include <fcntl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

namespace ars::sandbox {

namespace {

// Numbers that Debian 12's libseccomp has no name for; they are the same on every architecture.
constexpr int kFchmodat2 = 452;
constexpr int kStatmount = 457;
constexpr int kListmount = 458;
constexpr int kLsmSetSelfAttr = 460;
constexpr int kOpenTreeAttr = 467;
// The newest call that was looked at when this list was made: file_setattr of Linux 6.17. A list of
// refusals would let through what came later; like this it is a kernel without it.
constexpr std::uint32_t kNewestCall = 469;

// No use in tools, or a way out. EPERM.
constexpr int kDenied[] = {
    // mounts: old family, new family
    SCMP_SYS(mount),
    SCMP_SYS(umount),
    SCMP_SYS(umount2),
    SCMP_SYS(pivot_root),
    SCMP_SYS(chroot),
    SCMP_SYS(fsopen),
    SCMP_SYS(fsconfig),
    SCMP_SYS(fsmount),
    SCMP_SYS(fspick),
    SCMP_SYS(move_mount),
    SCMP_SYS(open_tree),
    SCMP_SYS(mount_setattr),
    kOpenTreeAttr,
    // other namespaces, other processes
    SCMP_SYS(setns),
    SCMP_SYS(pidfd_getfd),
    SCMP_SYS(kcmp),
    SCMP_SYS(move_pages),
    SCMP_SYS(migrate_pages),
    // kernel surface with a long history of holes
    SCMP_SYS(bpf),
    SCMP_SYS(perf_event_open),
    SCMP_SYS(userfaultfd),
    SCMP_SYS(keyctl),
    SCMP_SYS(add_key),
    SCMP_SYS(request_key),
    SCMP_SYS(lookup_dcookie),
    SCMP_SYS(nfsservctl),
    SCMP_SYS(uselib),
    SCMP_SYS(vm86),
    SCMP_SYS(vm86old),
    SCMP_SYS(modify_ldt),
    SCMP_SYS(fanotify_init),
    kLsmSetSelfAttr,
    // paths by handle, past every mount
    SCMP_SYS(open_by_handle_at),
    SCMP_SYS(name_to_handle_at),
    // the machine
    SCMP_SYS(init_module),
    SCMP_SYS(finit_module),
    SCMP_SYS(delete_module),
    SCMP_SYS(create_module),
    SCMP_SYS(kexec_load),
    SCMP_SYS(kexec_file_load),
    SCMP_SYS(reboot),
    SCMP_SYS(swapon),
    SCMP_SYS(swapoff),
    SCMP_SYS(acct),
    SCMP_SYS(quotactl),
    SCMP_SYS(quotactl_fd),
    SCMP_SYS(iopl),
    SCMP_SYS(ioperm),
    SCMP_SYS(syslog),
    SCMP_SYS(settimeofday),
    SCMP_SYS(stime),
    SCMP_SYS(clock_settime),
    SCMP_SYS(clock_adjtime),
    SCMP_SYS(adjtimex),
    SCMP_SYS(sethostname),
    SCMP_SYS(setdomainname),
    SCMP_SYS(vhangup),
};

// What DebugOwnProcesses allows; the kernel still asks for the same user and no other namespace.
constexpr int kDebug[] = {
    SCMP_SYS(ptrace),
    SCMP_SYS(process_vm_readv),
    SCMP_SYS(process_vm_writev),
    SCMP_SYS(process_madvise),
};

// Programs try these and go on without them. ENOSYS.
constexpr int kAbsent[] = {
    // its flags are in memory, which a filter can't read; clone() takes its place
    SCMP_SYS(clone3),
    SCMP_SYS(io_uring_setup),
    SCMP_SYS(io_uring_enter),
    SCMP_SYS(io_uring_register),
    // memory that no figure of its process shows to the watch
    SCMP_SYS(memfd_secret),
    kStatmount,
    kListmount,
};

constexpr std::uint32_t kNamespaceFlags = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                          CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
                                          CLONE_NEWNET;

constexpr std::uint32_t kFamilies[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
constexpr std::uint32_t kUnixOnly[] = {AF_UNIX};
constexpr std::uint32_t kNetlinkProtocols[] = {0};  // NETLINK_ROUTE: getifaddrs needs it
constexpr std::uint32_t kProtocolL2tp = 115;        // glibc has no name for it
// Protocols that load a module of the kernel when asked for and have been a way in.
constexpr std::uint32_t kAbsentProtocols[] = {IPPROTO_DCCP, IPPROTO_SCTP, kProtocolL2tp};
// <linux/ioprio.h> of some kernels is not C++.
constexpr std::uint32_t kIoprioOfUser = 3;
constexpr Bits kPacketType{0xF, SOCK_PACKET};

void deny_namespaces(SeccompProgram& program) {
    program.deny_any_bit(SCMP_SYS(clone), 0, kNamespaceFlags);
    // In clone CLONE_NEWTIME's bit belongs to the exit signal.
    program.deny_any_bit(SCMP_SYS(unshare), 0, kNamespaceFlags | CLONE_NEWTIME);
}

void deny_families(SeccompProgram& program, std::span<const std::uint32_t> allowed) {
    program.deny_unless(SCMP_SYS(socket), 0, allowed);
    program.deny_unless(SCMP_SYS(socketpair), 0, allowed);
}

void deny_sockets(SeccompProgram& program, const FilterOptions& options) {
    // Landlock's rules for TCP are no wall: MSG_FASTOPEN and MPTCP pass them.
    if (options.tier == Tier::landlock && options.network != Network::host) {
        deny_families(program, kUnixOnly);
        return;
    }
    deny_families(program, kFamilies);
    program.deny_unless(SCMP_SYS(socket), 2, kNetlinkProtocols, Equal{0, AF_NETLINK});
    // The old way to an AF_PACKET socket.
    program.deny_if(SCMP_SYS(socket), equals(0, AF_INET), matches(1, kPacketType));
    for (const std::uint32_t protocol : kAbsentProtocols) {
        const Condition asked = equals(2, protocol);
        program.answer(EPROTONOSUPPORT, SCMP_SYS(socket), {&asked, 1});
    }
    const std::array upper_layer{equals(1, IPPROTO_TCP), equals(2, TCP_ULP)};
    program.answer(ENOPROTOOPT, SCMP_SYS(setsockopt), upper_layer);
}

// Bytes typed into a terminal for somebody else, and line disciplines, which load modules.
void deny_terminal_tricks(SeccompProgram& program) {
    for (const std::uint32_t request :
         std::initializer_list<std::uint32_t>{TIOCSTI, TIOCLINUX, TIOCSETD}) {
        program.deny_if(SCMP_SYS(ioctl), equals(1, request));
    }
}

// A listener of a tool's own would be asked in place of ours, and could let a denied call go on.
// The kernel says EBUSY too wherever we listen.
void deny_own_listener(SeccompProgram& program) {
    const std::array listener{
        equals(0, SECCOMP_SET_MODE_FILTER), has_bits(1, SECCOMP_FILTER_FLAG_NEW_LISTENER)
    };
    program.answer(EBUSY, SCMP_SYS(seccomp), listener);
}

void deny_set_id(SeccompProgram& program) {
    struct Call {
        int number;
        unsigned mode_argument;
    };
    const Call calls[] = {
        {SCMP_SYS(chmod), 1},
        {SCMP_SYS(fchmod), 1},
        {SCMP_SYS(fchmodat), 2},
        {kFchmodat2, 2},
        {SCMP_SYS(creat), 1},
        {SCMP_SYS(mknod), 1},
        {SCMP_SYS(mknodat), 2},
    };
    constexpr std::uint32_t kTmpFile = O_TMPFILE & ~static_cast<std::uint32_t>(O_DIRECTORY);
    for (const std::uint32_t bit : {std::uint32_t{S_ISUID}, std::uint32_t{S_ISGID}}) {
        for (const Call& call : calls) {
            program.deny_if(call.number, has_bits(call.mode_argument, bit));
        }
        // The mode argument means something only with a flag that creates.
        for (const std::uint32_t creating : {std::uint32_t{O_CREAT}, kTmpFile}) {
            program.deny_if(SCMP_SYS(open), has_bits(1, creating), has_bits(2, bit));
            program.deny_if(SCMP_SYS(openat), has_bits(2, creating), has_bits(3, bit));
        }
    }
    program.answer(ENOSYS, SCMP_SYS(openat2));
}

// Limits and priorities of processes that have the tools' uid and are not theirs. In the landlock
// tier the server and other scopes are in sight, so they are for the caller alone (0); otherwise
// only pid 1 is kept from a tool that would starve its own scope. Signals and ptrace are refused by
// others.
void deny_other_processes(SeccompProgram& program, Tier tier) {
    constexpr std::uint32_t kSelf[] = {0};
    constexpr std::uint32_t kInit = 1;
    const auto deny = [&](int call, unsigned process) {
        if (tier == Tier::landlock) {
            program.deny_unless(call, process, kSelf);
        } else {
            program.deny_if(call, equals(process, kInit));
        }
    };
    for (const int call :
         {SCMP_SYS(prlimit64),
          SCMP_SYS(sched_setaffinity),
          SCMP_SYS(sched_setscheduler),
          SCMP_SYS(sched_setparam),
          SCMP_SYS(sched_setattr)}) {
        deny(call, 0);
    }
    deny(SCMP_SYS(setpriority), 1);
    deny(SCMP_SYS(ioprio_set), 1);
    // "All of my user's", whoever is asked.
    program.deny_if(SCMP_SYS(setpriority), equals(0, PRIO_USER));
    program.deny_if(SCMP_SYS(ioprio_set), equals(0, kIoprioOfUser));
}

}  // namespace

FilterOptions filter_options(const Policy& policy, Tier tier) {
    FilterOptions options;
    options.tier = tier;
    options.network = policy.network;
    options.debug = policy.debug.has_value();
    return options;
}

std::string build_seccomp_filter(const FilterOptions& options) {
    SeccompProgram program;
    for (const int call : kDenied) {
        program.deny(call);
    }
    if (!options.debug) {
        for (const int call : kDebug) {
            program.deny(call);
        }
    }
    for (const int call : kAbsent) {
        program.answer(ENOSYS, call);
    }
    deny_namespaces(program);
    deny_sockets(program, options);
    deny_terminal_tricks(program);
    deny_own_listener(program);
    if (options.refuse_set_id) {
        deny_set_id(program);
    }
    deny_other_processes(program, options.tier);
    return program.compile(kNewestCall);
}

std::string syscall_name(int number) {
    const std::unique_ptr<char, decltype(&std::free)> name(
        ::seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number), &std::free
    );
    if (name) {
        return name.get();
    }
    switch (number) {
        case kFchmodat2:
            return "fchmodat2";
        case kLsmSetSelfAttr:
            return "lsm_set_self_attr";
        case kOpenTreeAttr:
            return "open_tree_attr";
        default:
            return "system call " + std::to_string(number);
    }
}

}  // namespace ars::sandbox
