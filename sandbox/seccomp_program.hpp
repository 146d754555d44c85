// Assembles one seccomp program: default-allow, rules added by call and argument. All comparisons
// are of the low 32 bits, which is what the kernel uses of an int argument: high bits change no
// verdict. Every instruction costs a scope's start a third of a microsecond, and so does every step
// to a verdict, since the kernel tries all calls when it attaches: so calls are found by a binary
// search over ranges with one verdict, and answers are shared.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
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

// Holds when the argument has `bits.value` below `bits.mask`.
struct Condition {
    unsigned argument = 0;
    Bits bits{};
};

[[nodiscard]] Condition matches(unsigned argument, Bits bits);
[[nodiscard]] Condition has_bits(unsigned argument, std::uint32_t bits);
[[nodiscard]] Condition equals(unsigned argument, std::uint32_t value);

// Of several rules for one call the first that holds answers. A call that this architecture does
// not have (a negative number) has no rule.
class SeccompProgram {
  public:
    // EPERM, when all conditions hold; lock_down.hpp turns it into a question to a listener.
    void deny(int call, std::span<const Condition> conditions = {});
    void deny_if(int call, Condition condition);
    void deny_if(int call, Condition first, Condition second);
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
    void answer(int error, int call, std::span<const Condition> conditions = {});

    // An array of sock_filter. Calls with numbers above `newest` answer ENOSYS, and so do those of
    // other architectures (i386, x32), which have other numbers.
    [[nodiscard]] std::string compile(std::uint32_t newest) const;

  private:
    struct Rule {
        std::uint32_t action = 0;
        std::vector<Condition> conditions{};  // all must hold
        unsigned argument = 0;
        std::uint32_t any_of = 0;              // and then any of these bits
        std::vector<std::uint32_t> allowed{};  // and none of these values
    };
    void add(int call, Rule rule);

    class Assembler;
    std::map<std::uint32_t, std::vector<Rule>> rules_;  // by call
};

}  // namespace ars::sandbox
