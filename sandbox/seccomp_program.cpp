#include "sandbox/seccomp_program.hpp"

#include "base/fd.hpp"

#include <cerrno>
#include <cstddef>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <unistd.h>

namespace ars::sandbox {

namespace {

constexpr std::size_t kProgramBytes = 4096 * sizeof(sock_filter);  // BPF_MAXINSNS of the kernel

}  // namespace

void Others::cover(std::span<const std::uint32_t> allowed, Bits prefix, int bit) {
    bool any = false;
    for (const std::uint32_t number : allowed) {
        any = any || (number & prefix.mask) == prefix.value;
    }
    if (!any) {
        patterns_[used_++] = prefix;
        return;
    }
    if (bit < 0) {
        return;
    }
    const std::uint32_t mask = std::uint32_t{1} << static_cast<unsigned>(bit);
    cover(allowed, {prefix.mask | mask, prefix.value}, bit - 1);
    cover(allowed, {prefix.mask | mask, prefix.value | mask}, bit - 1);
}

scmp_arg_cmp matches(unsigned argument, Bits bits) {
    return {argument, SCMP_CMP_MASKED_EQ, bits.mask, bits.value};
}
scmp_arg_cmp has_bits(unsigned argument, std::uint32_t bits) {
    return matches(argument, {bits, bits});
}
scmp_arg_cmp equals(unsigned argument, std::uint32_t value) {
    return matches(argument, {0xFFFFFFFFU, value});
}

SeccompProgram::SeccompProgram(bool notify)
    : context_(::seccomp_init(SCMP_ACT_ALLOW), &::seccomp_release),
      denial_(notify ? SCMP_ACT_NOTIFY : SCMP_ACT_ERRNO(EPERM)) {
    if (!context_) {
        error_ = ENOMEM;
        return;
    }
    // Another architecture's calls (i386, x32) have other numbers: none of them is served.
    note(::seccomp_attr_set(context_.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS)));
    // A binary search instead of a list: cheaper on every call a tool makes.
    note(::seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2));
}

void SeccompProgram::note(int answer) {
    if (answer != 0 && error_ == 0) {
        error_ = -answer;
    }
}

void SeccompProgram::add(std::uint32_t action, int call, std::span<const scmp_arg_cmp> conditions) {
    if (!context_ || call == __NR_SCMP_ERROR) {
        return;
    }
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

void SeccompProgram::deny(int call, std::span<const scmp_arg_cmp> conditions) {
    add(denial_, call, conditions);
}
void SeccompProgram::deny_if(int call, scmp_arg_cmp condition) { deny(call, {&condition, 1}); }
void SeccompProgram::deny_if(int call, scmp_arg_cmp first, scmp_arg_cmp second) {
    const std::array both{first, second};
    deny(call, both);
}
void SeccompProgram::answer(int error, int call, std::span<const scmp_arg_cmp> conditions) {
    add(SCMP_ACT_ERRNO(static_cast<std::uint16_t>(error)), call, conditions);
}

base::Result<std::string> SeccompProgram::compile(std::uint32_t newest) {
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
    auto rules = base::read_to_end(file.get(), kProgramBytes);
    if (!rules) {
        return rules;
    }
    // libseccomp can't compare a call's number, so this stands before its program. No i386 call is
    // let through by it: what passes here still meets the architecture check.
    const sock_filter prologue[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, newest, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
    };
    return std::string(reinterpret_cast<const char*>(prologue), sizeof prologue) + *rules;
}

}  // namespace ars::sandbox
