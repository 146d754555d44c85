// Assembles one seccomp program: default-allow, rules added by call and argument. All comparisons
// are of the low 32 bits, which is what the kernel uses of an int argument: high bits change no
// verdict.
#pragma once

#include "base/result.hpp"

#include <seccomp.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

namespace ars::sandbox {

struct Bits {
    std::uint32_t mask = 0;
    std::uint32_t value = 0;
};

// Matches every number below 2^bits outside `allowed` with as few patterns as a walk from the top
// bit finds: one filter rule can't say "is none of these". Bits above are ignored, so `bits` covers
// what the kernel itself does not refuse. Each pattern costs a scope's start about a microsecond.
class Others {
  public:
    Others(std::span<const std::uint32_t> allowed, int bits) { cover(allowed, {}, bits - 1); }
    [[nodiscard]] std::span<const Bits> patterns() const { return {patterns_.data(), used_}; }

  private:
    void cover(std::span<const std::uint32_t> allowed, Bits prefix, int bit);
    std::array<Bits, 64> patterns_{};
    std::size_t used_ = 0;
};

[[nodiscard]] scmp_arg_cmp matches(unsigned argument, Bits bits);
[[nodiscard]] scmp_arg_cmp has_bits(unsigned argument, std::uint32_t bits);
[[nodiscard]] scmp_arg_cmp equals(unsigned argument, std::uint32_t value);

class SeccompProgram {
  public:
    // With `notify` what deny() names is reported to a listener, who answers, instead of EPERM.
    explicit SeccompProgram(bool notify);

    // EPERM, when all conditions hold.
    void deny(int call, std::span<const scmp_arg_cmp> conditions = {});
    void deny_if(int call, scmp_arg_cmp condition);
    void deny_if(int call, scmp_arg_cmp first, scmp_arg_cmp second);
    // Another errno: as if this kernel did not have it. Never reported.
    void answer(int error, int call, std::span<const scmp_arg_cmp> conditions = {});

    // An array of sock_filter. Calls with numbers above `newest` answer ENOSYS.
    [[nodiscard]] base::Result<std::string> compile(std::uint32_t newest);

  private:
    void add(std::uint32_t action, int call, std::span<const scmp_arg_cmp> conditions);
    void note(int answer);

    std::unique_ptr<std::remove_pointer_t<scmp_filter_ctx>, decltype(&::seccomp_release)> context_;
    std::uint32_t denial_;
    int error_ = 0;
};

}  // namespace ars::sandbox
