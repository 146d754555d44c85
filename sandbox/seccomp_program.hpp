// Assembles one seccomp program: default-allow, rules added by call and argument. All comparisons
// are of the low 32 bits, which is what the kernel uses of an int argument: high bits change no
// verdict. Each instruction costs a scope's start a third of a microsecond, so what libseccomp can
// say only with a rule for each bit or value, "any of these bits" and "none of these values", is
// assembled here and stands before its program.
#pragma once

#include "base/result.hpp"

#include <seccomp.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <linux/filter.h>

namespace ars::sandbox {

struct Bits {
    std::uint32_t mask = 0;
    std::uint32_t value = 0;
};

struct Equal {
    unsigned argument = 0;
    std::uint32_t value = 0;
};

[[nodiscard]] scmp_arg_cmp matches(unsigned argument, Bits bits);
[[nodiscard]] scmp_arg_cmp has_bits(unsigned argument, std::uint32_t bits);
[[nodiscard]] scmp_arg_cmp equals(unsigned argument, std::uint32_t value);

class SeccompProgram {
  public:
    SeccompProgram();

    // EPERM, when all conditions hold; lock_down.hpp turns it into a question to a listener.
    void deny(int call, std::span<const scmp_arg_cmp> conditions = {});
    void deny_if(int call, scmp_arg_cmp condition);
    void deny_if(int call, scmp_arg_cmp first, scmp_arg_cmp second);
    // EPERM, when the argument has any of `bits`.
    void deny_any_bit(int call, unsigned argument, std::uint32_t bits);
    // EPERM, unless the argument is one of `allowed`; with `when`, only if it holds.
    void deny_unless(
        int call,
        unsigned argument,
        std::span<const std::uint32_t> allowed,
        std::optional<Equal> when = {}
    );
    // Another errno: as if this kernel did not have it. Never reported.
    void answer(int error, int call, std::span<const scmp_arg_cmp> conditions = {});

    // An array of sock_filter. Calls with numbers above `newest` answer ENOSYS.
    [[nodiscard]] base::Result<std::string> compile(std::uint32_t newest);

  private:
    struct Check {
        std::optional<Equal> when;
        unsigned argument = 0;
        std::uint32_t bits = 0;                // with no values: any of these is denied
        std::vector<std::uint32_t> allowed{};  // any other value is denied
    };
    void add(std::uint32_t action, int call, std::span<const scmp_arg_cmp> conditions);
    void note(int answer);
    [[nodiscard]] std::vector<sock_filter> assemble(std::uint32_t newest) const;
    static void assemble(const Check& check, std::vector<sock_filter>& out);

    std::unique_ptr<std::remove_pointer_t<scmp_filter_ctx>, decltype(&::seccomp_release)> context_;
    std::map<int, std::vector<Check>> checks_;  // by call
    int error_ = 0;
};

}  // namespace ars::sandbox
