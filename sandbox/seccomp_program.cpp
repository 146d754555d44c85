#include "sandbox/seccomp_program.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <ranges>
#include <utility>

#include <linux/audit.h>
#include <linux/seccomp.h>

namespace ars::sandbox {

namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#endif

constexpr std::uint32_t errno_of(int error) {
    return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error);
}

sock_filter load(std::size_t offset) {
    return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}

}  // namespace

Condition matches(unsigned argument, Bits bits) { return {argument, bits}; }
Condition has_bits(unsigned argument, std::uint32_t bits) {
    return matches(argument, {bits, bits});
}
Condition equals(unsigned argument, std::uint32_t value) {
    return matches(argument, {0xFFFFFFFFU, value});
}

void SeccompProgram::add(int call, Rule rule) {
    if (call >= 0) {
        rules_[static_cast<std::uint32_t>(call)].push_back(std::move(rule));
    }
}

void SeccompProgram::deny(int call, std::span<const Condition> conditions) {
    answer(EPERM, call, conditions);
}
void SeccompProgram::deny_if(int call, Condition condition) { deny(call, {&condition, 1}); }
void SeccompProgram::deny_if(int call, Condition first, Condition second) {
    const Condition both[] = {first, second};
    deny(call, both);
}
void SeccompProgram::answer(int error, int call, std::span<const Condition> conditions) {
    add(call, {.action = errno_of(error), .conditions = {conditions.begin(), conditions.end()}});
}

void SeccompProgram::deny_any_bit(int call, unsigned argument, std::uint32_t bits) {
    add(call, {.action = errno_of(EPERM), .argument = argument, .any_of = bits});
}

void SeccompProgram::deny_unless(
    int call, unsigned argument, std::span<const std::uint32_t> allowed, std::optional<Equal> when
) {
    Rule rule{
        .action = errno_of(EPERM), .argument = argument, .allowed = {allowed.begin(), allowed.end()}
    };
    if (when) {
        rule.conditions.push_back(equals(when->argument, when->value));
    }
    add(call, std::move(rule));
}

// Writes a program from its end to its start, so that the target of every jump is there already. A
// place is counted from the end; what is written next stands before it.
class SeccompProgram::Assembler {
  public:
    using Place = std::size_t;

    Place answer(std::uint32_t action) { return write(BPF_STMT(BPF_RET | BPF_K, action)); }

    Place rules(const std::vector<Rule>& of_call) {
        Place next = answer(SECCOMP_RET_ALLOW);
        for (const Rule& each : std::views::reverse(of_call)) {
            next = rule(each, next);
        }
        return next;
    }

    // The verdict of the range that the number, which is loaded, lies in.
    struct Range {
        std::uint32_t first = 0;
        std::uint32_t action = 0;
        const std::vector<Rule>* rules = nullptr;  // in the place of `action`
    };
    Place search(std::span<const Range> ranges) {
        if (ranges.size() == 1) {
            return ranges[0].rules != nullptr ? rules(*ranges[0].rules) : answer(ranges[0].action);
        }
        const std::size_t middle = ranges.size() / 2;
        const Place above = search(ranges.subspan(middle));
        const Place below = search(ranges.first(middle));
        return test(BPF_JGE, ranges[middle].first, above, below);
    }

    Place load_then(std::size_t offset, Place next) {
        if (next + 1 != reversed_.size()) {
            go_to(next);
        }
        return write(load(offset));
    }
    // On `yes` or `no`, by what is loaded.
    Place test(std::uint16_t comparison, std::uint32_t value, Place yes, Place no) {
        yes = near(yes);
        no = near(no);
        return write(BPF_JUMP(
            static_cast<std::uint16_t>(BPF_JMP | BPF_K | comparison),
            value,
            distance(yes),
            distance(no)
        ));
    }

    [[nodiscard]] std::string program() const {
        const std::vector<sock_filter> forward(reversed_.rbegin(), reversed_.rend());
        return {
            reinterpret_cast<const char*>(forward.data()), forward.size() * sizeof(sock_filter)
        };
    }

  private:
    // A jump reaches 255 instructions; two of them may be put between it and its target.
    static constexpr std::size_t kReach = 250;

    Place write(sock_filter instruction) {
        // One answer serves all that reach it.
        if (BPF_CLASS(instruction.code) == BPF_RET) {
            const auto reach = static_cast<std::ptrdiff_t>(std::min(kReach, reversed_.size()));
            const auto same = std::find_if(
                reversed_.rbegin(),
                reversed_.rbegin() + reach,
                [&](const sock_filter& each) {
                    return each.code == instruction.code && each.k == instruction.k;
                }
            );
            if (same != reversed_.rbegin() + reach) {
                return static_cast<Place>(reversed_.rend() - same) - 1;
            }
        }
        reversed_.push_back(instruction);
        return reversed_.size() - 1;
    }
    Place go_to(Place target) {
        return write(
            BPF_STMT(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(reversed_.size() - target - 1))
        );
    }
    Place near(Place target) {
        if (reversed_.size() - target <= kReach) {
            return target;
        }
        const sock_filter there = reversed_[target];
        return BPF_CLASS(there.code) == BPF_RET ? write(there) : go_to(target);
    }
    [[nodiscard]] std::uint8_t distance(Place target) const {
        return static_cast<std::uint8_t>(reversed_.size() - target - 1);
    }
    Place load_argument_then(unsigned argument, Place next) {
        // Both targets are little-endian: the low word comes first.
        return load_then(offsetof(seccomp_data, args) + argument * sizeof(std::uint64_t), next);
    }

    // Goes on at `otherwise` when the rule does not hold.
    Place rule(const Rule& each, Place otherwise) {
        Place next = answer(each.action);
        if (!each.allowed.empty()) {
            for (const std::uint32_t value : std::views::reverse(each.allowed)) {
                next = test(BPF_JEQ, value, otherwise, next);
            }
            next = load_argument_then(each.argument, next);
        } else if (each.any_of != 0) {
            next = test(BPF_JSET, each.any_of, next, otherwise);
            next = load_argument_then(each.argument, next);
        }
        for (const Condition& condition : std::views::reverse(each.conditions)) {
            const auto [mask, value] = condition.bits;
            const bool one_bit = value == mask && (mask & (mask - 1)) == 0;
            next = test(one_bit ? BPF_JSET : BPF_JEQ, value, next, otherwise);
            if (!one_bit && mask != 0xFFFFFFFFU) {
                next = write(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask));
            }
            next = load_argument_then(condition.argument, next);
        }
        return next;
    }

    std::vector<sock_filter> reversed_;
};

std::string SeccompProgram::compile(std::uint32_t newest) const {
    std::vector<Assembler::Range> ranges{{.first = 0, .action = SECCOMP_RET_ALLOW}};
    const auto add_range = [&ranges](Assembler::Range range) {
        if (ranges.back().first == range.first) {
            ranges.pop_back();
        }
        const bool same = !ranges.empty() && range.rules == nullptr &&
                          ranges.back().rules == nullptr && ranges.back().action == range.action;
        if (!same) {
            ranges.push_back(range);
        }
    };
    for (const auto& [call, rules] : rules_) {
        const Rule& first = rules.front();
        const bool always = first.conditions.empty() && first.any_of == 0 && first.allowed.empty();
        add_range({.first = call, .action = first.action, .rules = always ? nullptr : &rules});
        add_range({.first = call + 1, .action = SECCOMP_RET_ALLOW});
    }
    add_range({.first = newest + 1, .action = errno_of(ENOSYS)});

    Assembler assembler;
    const Assembler::Place absent = assembler.answer(errno_of(ENOSYS));
    const Assembler::Place search =
        assembler.load_then(offsetof(seccomp_data, nr), assembler.search(ranges));
    // Numbers mean something for one architecture only.
    assembler.load_then(
        offsetof(seccomp_data, arch), assembler.test(BPF_JEQ, kArchitecture, search, absent)
    );
    return assembler.program();
}

}  // namespace ars::sandbox
