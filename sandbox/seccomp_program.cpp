#include "sandbox/seccomp_program.hpp"

#include "base/fd.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <unistd.h>

namespace ars::sandbox {

namespace {

constexpr std::size_t kProgramBytes = 4096 * sizeof(sock_filter);  // BPF_MAXINSNS of the kernel

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#endif

sock_filter load(std::size_t offset) {
    return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}
// Both targets are little-endian: the low word comes first.
sock_filter load_argument(unsigned argument) {
    return load(offsetof(seccomp_data, args) + argument * sizeof(std::uint64_t));
}
// Goes on behind the next `yes` or `no` instructions.
sock_filter jump(std::uint16_t test, std::uint32_t value, std::size_t yes, std::size_t no) {
    return BPF_JUMP(
        static_cast<std::uint16_t>(BPF_JMP | BPF_K | test),
        value,
        static_cast<std::uint8_t>(yes),
        static_cast<std::uint8_t>(no)
    );
}
sock_filter answer_with(std::uint32_t action) { return BPF_STMT(BPF_RET | BPF_K, action); }

}  // namespace

scmp_arg_cmp matches(unsigned argument, Bits bits) {
    return {argument, SCMP_CMP_MASKED_EQ, bits.mask, bits.value};
}
scmp_arg_cmp has_bits(unsigned argument, std::uint32_t bits) {
    return matches(argument, {bits, bits});
}
scmp_arg_cmp equals(unsigned argument, std::uint32_t value) {
    return matches(argument, {0xFFFFFFFFU, value});
}

SeccompProgram::SeccompProgram() : context_(::seccomp_init(SCMP_ACT_ALLOW), &::seccomp_release) {
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
    answer(EPERM, call, conditions);
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
    const std::vector<sock_filter> first = assemble(newest);
    return std::string(
               reinterpret_cast<const char*>(first.data()), first.size() * sizeof(sock_filter)
           ) +
           *rules;
}

void SeccompProgram::deny_any_bit(int call, unsigned argument, std::uint32_t bits) {
    if (call >= 0) {  // the architecture has it
        checks_[call].push_back({.when = {}, .argument = argument, .bits = bits});
    }
}

void SeccompProgram::deny_unless(
    int call, unsigned argument, std::span<const std::uint32_t> allowed, std::optional<Equal> when
) {
    if (call >= 0) {
        checks_[call].push_back(
            {.when = when, .argument = argument, .allowed = {allowed.begin(), allowed.end()}}
        );
    }
}

// Falls through when the check finds nothing to deny.
void SeccompProgram::assemble(const Check& check, std::vector<sock_filter>& out) {
    const std::size_t values = check.allowed.size();
    if (check.when) {
        out.push_back(load_argument(check.when->argument));
        out.push_back(jump(BPF_JEQ, check.when->value, 0, std::max<std::size_t>(values, 1) + 2));
    }
    out.push_back(load_argument(check.argument));
    if (values == 0) {
        out.push_back(jump(BPF_JSET, check.bits, 0, 1));
    }
    for (std::size_t i = 0; i < values; ++i) {
        out.push_back(jump(BPF_JEQ, check.allowed[i], values - i, 0));
    }
    out.push_back(answer_with(SECCOMP_RET_ERRNO | EPERM));
}

std::vector<sock_filter> SeccompProgram::assemble(std::uint32_t newest) const {
    const sock_filter absent = answer_with(SECCOMP_RET_ERRNO | ENOSYS);
    // Numbers mean something for one architecture only. What passes here meets libseccomp's check
    // of it too.
    std::vector<sock_filter> out{
        load(offsetof(seccomp_data, arch)),
        jump(BPF_JEQ, kArchitecture, 1, 0),
        absent,
        load(offsetof(seccomp_data, nr)),
        jump(BPF_JGT, newest, 0, 1),
        absent,
    };
    for (const auto& [call, checks] : checks_) {
        std::vector<sock_filter> block;
        for (const Check& check : checks) {
            assemble(check, block);
        }
        block.push_back(load(offsetof(seccomp_data, nr)));
        out.push_back(jump(BPF_JEQ, static_cast<std::uint32_t>(call), 0, block.size()));
        out.insert(out.end(), block.begin(), block.end());
    }
    return out;
}

}  // namespace ars::sandbox
