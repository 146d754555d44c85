#include "sandbox/seccomp_filter.hpp"

#include "base/fd.hpp"

#include <seccomp.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include <fcntl.h>
#include <linux/sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ars::sandbox {

namespace {

// Numbers that Debian 12's libseccomp has no name for; they are the same on every architecture.
constexpr int kFchmodat2 = 452;
constexpr int kOpenTreeAttr = 467;

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
    SCMP_SYS(ptrace),
    SCMP_SYS(process_vm_readv),
    SCMP_SYS(process_vm_writev),
    SCMP_SYS(pidfd_getfd),
    SCMP_SYS(kcmp),
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
    SCMP_SYS(fanotify_init),
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

// Programs try these and go on without them. ENOSYS.
constexpr int kAbsent[] = {
    SCMP_SYS(clone3
    ),  // its flags are in memory, which a filter can't read; clone() takes its place
    SCMP_SYS(io_uring_setup),
    SCMP_SYS(io_uring_enter),
    SCMP_SYS(io_uring_register),
};

constexpr std::uint32_t kNamespaceFlags[] = {
    CLONE_NEWNS,
    CLONE_NEWCGROUP,
    CLONE_NEWUTS,
    CLONE_NEWIPC,
    CLONE_NEWUSER,
    CLONE_NEWPID,
    CLONE_NEWNET,
};

constexpr std::uint32_t kFamilies[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
constexpr std::uint32_t kNetlinkProtocols[] = {0};  // NETLINK_ROUTE: getifaddrs needs it

struct Bits {
    std::uint32_t mask = 0;
    std::uint32_t value = 0;
};

// Covers every 32-bit number outside `allowed` with as few (mask, value) patterns as a walk from
// the top bit finds: one filter rule can't say "is none of these".
void cover_others(
    std::span<const std::uint32_t> allowed,
    Bits prefix,
    int bit,
    std::span<Bits> out,
    std::size_t& used
) {
    bool any = false;
    for (const std::uint32_t number : allowed) {
        any = any || (number & prefix.mask) == prefix.value;
    }
    if (!any) {
        out[used++] = prefix;
        return;
    }
    if (bit < 0) {
        return;
    }
    const std::uint32_t mask = std::uint32_t{1} << static_cast<unsigned>(bit);
    cover_others(allowed, {prefix.mask | mask, prefix.value}, bit - 1, out, used);
    cover_others(allowed, {prefix.mask | mask, prefix.value | mask}, bit - 1, out, used);
}

struct Patterns {
    std::array<Bits, 128> bits{};
    std::size_t used = 0;
    explicit Patterns(std::span<const std::uint32_t> allowed) {
        cover_others(allowed, {}, 31, bits, used);
    }
    [[nodiscard]] std::span<const Bits> all() const { return {bits.data(), used}; }
};

scmp_arg_cmp low_bits(unsigned argument, Bits bits) {
    return {argument, SCMP_CMP_MASKED_EQ, bits.mask, bits.value};
}
scmp_arg_cmp has_bits(unsigned argument, std::uint32_t bits) {
    return low_bits(argument, {bits, bits});
}
scmp_arg_cmp equals(unsigned argument, std::uint32_t value) {
    return low_bits(argument, {0xFFFFFFFFU, value});
}

class Filter {
  public:
    Filter() : context_(::seccomp_init(SCMP_ACT_ALLOW), &::seccomp_release) {
        if (!context_) {
            error_ = ENOMEM;
            return;
        }
        // Another architecture's calls (i386, x32) have other numbers: none of them is served.
        note(::seccomp_attr_set(context_.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS)));
        // A binary search instead of a list: cheaper on every call a tool makes.
        note(::seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2));
    }

    void deny(int error, int call, std::span<const scmp_arg_cmp> conditions = {}) {
        if (!context_ || call == __NR_SCMP_ERROR) {
            return;
        }
        const auto action = SCMP_ACT_ERRNO(static_cast<std::uint16_t>(error));
        const int answer = ::seccomp_rule_add_array(
            context_.get(),
            action,
            call,
            static_cast<unsigned>(conditions.size()),
            conditions.empty() ? nullptr : conditions.data()
        );
        // EDOM: the call does not exist on this architecture.
        note(answer == -EDOM ? 0 : answer);
    }
    void deny_if(int call, scmp_arg_cmp condition) { deny(EPERM, call, {&condition, 1}); }
    void deny_if(int call, scmp_arg_cmp first, scmp_arg_cmp second) {
        const std::array both{first, second};
        deny(EPERM, call, both);
    }

    [[nodiscard]] base::Result<std::string> compile() {
        base::Fd file(::memfd_create("seccomp", MFD_CLOEXEC));
        if (error_ == 0 && !file) {
            error_ = errno;
        }
        if (error_ == 0) {
            note(::seccomp_export_bpf(context_.get(), file.get()));
        }
        if (error_ != 0) {
            return base::fail_errno("seccomp_build_failed", "build the seccomp filter", error_);
        }
        ::lseek(file.get(), 0, SEEK_SET);
        return base::read_to_end(file.get(), 512 * 1024);
    }

  private:
    void note(int answer) {
        if (answer != 0 && error_ == 0) {
            error_ = -answer;
        }
    }
    std::unique_ptr<std::remove_pointer_t<scmp_filter_ctx>, decltype(&::seccomp_release)> context_;
    int error_ = 0;
};

void deny_namespaces(Filter& filter) {
    for (const std::uint32_t flag : kNamespaceFlags) {
        filter.deny_if(SCMP_SYS(clone), has_bits(0, flag));
        filter.deny_if(SCMP_SYS(unshare), has_bits(0, flag));
    }
    // In clone this bit belongs to the exit signal.
    filter.deny_if(SCMP_SYS(unshare), has_bits(0, CLONE_NEWTIME));
}

void deny_families(Filter& filter) {
    const Patterns families(kFamilies);
    for (const Bits bits : families.all()) {
        filter.deny_if(SCMP_SYS(socket), low_bits(0, bits));
        filter.deny_if(SCMP_SYS(socketpair), low_bits(0, bits));
    }
    const Patterns protocols(kNetlinkProtocols);
    for (const Bits bits : protocols.all()) {
        filter.deny_if(SCMP_SYS(socket), equals(0, AF_NETLINK), low_bits(2, bits));
    }
}

void deny_terminal_injection(Filter& filter) {
    filter.deny_if(SCMP_SYS(ioctl), equals(1, TIOCSTI));
    filter.deny_if(SCMP_SYS(ioctl), equals(1, TIOCLINUX));
}

void deny_set_id(Filter& filter) {
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
            filter.deny_if(call.number, has_bits(call.mode_argument, bit));
        }
        // The mode argument means something only with a flag that creates.
        for (const std::uint32_t creating : {std::uint32_t{O_CREAT}, kTmpFile}) {
            filter.deny_if(SCMP_SYS(open), has_bits(1, creating), has_bits(2, bit));
            filter.deny_if(SCMP_SYS(openat), has_bits(2, creating), has_bits(3, bit));
        }
    }
    filter.deny(ENOSYS, SCMP_SYS(openat2));
}

}  // namespace

base::Result<std::string> build_seccomp_filter(const FilterOptions& options) {
    Filter filter;
    for (const int call : kDenied) {
        filter.deny(EPERM, call);
    }
    for (const int call : kAbsent) {
        filter.deny(ENOSYS, call);
    }
    deny_namespaces(filter);
    deny_families(filter);
    deny_terminal_injection(filter);
    if (options.refuse_set_id) {
        deny_set_id(filter);
    }
    return filter.compile();
}

}  // namespace ars::sandbox
