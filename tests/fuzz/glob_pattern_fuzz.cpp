// Patterns and paths, first line and second line of the input: the matcher must agree with a slow
// one that is plainly right, end in time, and never rule out a directory that holds a match.
#include "fsmount/guest_path.hpp"
#include "runtime/tools/glob_pattern.hpp"
#include "tests/fuzz/scratch.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace ars;
using tools::GlobPattern;

// Tries every way a "*" can go. Everything else is asked of the matcher under test, one character
// of the name at a time.
bool slow_name(std::string_view pattern, std::string_view name) {
    const std::size_t star = [&] {
        for (std::size_t i = 0; i < pattern.size(); ++i) {
            if (pattern[i] == '\\') {
                ++i;
            } else if (pattern[i] == '*') {
                return i;
            }
        }
        return std::string_view::npos;
    }();
    if (star == std::string_view::npos) {
        return tools::matches_name(pattern, name);
    }
    for (std::size_t head = 0; head <= name.size(); ++head) {
        if (tools::matches_name(pattern.substr(0, star), name.substr(0, head))) {
            for (std::size_t tail = head; tail <= name.size(); ++tail) {
                if (slow_name(pattern.substr(star + 1), name.substr(tail))) {
                    return true;
                }
            }
        }
    }
    return false;
}

bool slow_parts(
    const std::vector<std::string>& pattern,
    std::size_t p,
    const std::vector<std::string>& names,
    std::size_t n
) {
    if (p == pattern.size()) {
        return n == names.size();
    }
    if (pattern[p] == "**") {
        for (std::size_t skip = n; skip <= names.size(); ++skip) {
            if (slow_parts(pattern, p + 1, names, skip)) {
                return true;
            }
        }
        return false;
    }
    return n < names.size() && slow_name(pattern[p], names[n]) &&
           slow_parts(pattern, p + 1, names, n + 1);
}

// Brackets and braces may hold a "*" of their own: left to the unit tests.
bool is_comparable(std::string_view pattern, std::string_view path) {
    return pattern.size() <= 24 && path.size() <= 24 &&
           pattern.find_first_of("[{") == std::string_view::npos;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const std::string_view pattern = text.substr(0, text.find('\n'));
    const std::string_view path = text.substr(std::min(pattern.size() + 1, text.size()));
    const auto parsed = GlobPattern::parse(pattern);
    if (!parsed) {
        require(parsed.error().code == "invalid_argument");
        return 0;
    }
    const bool fits = parsed->matches(path);
    const std::vector<std::string> names = fsmount::split_path(path);
    if (is_comparable(pattern, path)) {
        require(fits == slow_parts(fsmount::split_path(pattern), 0, names, 0));
    }
    std::string above;
    for (std::size_t i = 0; fits && i + 1 < names.size(); ++i) {
        above += (i == 0 ? "" : "/") + names[i];
        require(parsed->may_match_below(above));
    }
    return 0;
}
