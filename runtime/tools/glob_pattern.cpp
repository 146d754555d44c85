#include "runtime/tools/glob_pattern.hpp"

#include "fsmount/guest_path.hpp"

namespace ars::tools {

namespace {

constexpr std::size_t kAlternatives = 64;
constexpr std::size_t kNone = std::string_view::npos;

std::unexpected<base::Error> bad_pattern(std::string_view pattern, const char* why) {
    return base::fail(
        base::ErrorKind::invalid,
        "invalid_argument",
        "pattern \"" + std::string(pattern.substr(0, 256)) + "\" " + why
    );
}

struct Braces {
    std::size_t open = kNone;
    std::size_t close = kNone;
};

// The first pair of braces with a comma directly in it, at `from` or behind.
Braces find_braces(std::string_view pattern, std::size_t from) {
    for (std::size_t open = pattern.find('{', from); open != kNone;
         open = pattern.find('{', open + 1)) {
        int depth = 0;
        bool comma = false;
        for (std::size_t i = open; i < pattern.size(); ++i) {
            depth += pattern[i] == '{' ? 1 : 0;
            depth -= pattern[i] == '}' ? 1 : 0;
            comma = comma || (pattern[i] == ',' && depth == 1);
            if (depth == 0) {
                if (comma) {
                    return {open, i};
                }
                break;
            }
        }
    }
    return {};
}

// False when there are too many. Nothing before `from` can be expanded.
bool expand(const std::string& pattern, std::size_t from, std::vector<std::string>& out) {
    const Braces braces = find_braces(pattern, from);
    if (braces.open == kNone) {
        out.push_back(pattern);
        return out.size() <= kAlternatives;
    }
    const std::string head = pattern.substr(0, braces.open);
    const std::string tail = pattern.substr(braces.close + 1);
    int depth = 0;
    std::size_t begin = braces.open + 1;
    for (std::size_t i = begin; i <= braces.close; ++i) {
        if (depth == 0 && (pattern[i] == ',' || i == braces.close)) {
            if (!expand(head + pattern.substr(begin, i - begin) + tail, braces.open, out)) {
                return false;
            }
            begin = i + 1;
        }
        depth += pattern[i] == '{' ? 1 : 0;
        depth -= pattern[i] == '}' ? 1 : 0;
    }
    return true;
}

// Length of the bracket expression at the start of `pattern` and whether it takes `c`; 0 when there
// is none.
struct Bracket {
    std::size_t size = 0;
    bool takes = false;
};
Bracket bracket(std::string_view pattern, char c) {
    std::size_t i = 1;
    const bool inverted = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
    i += inverted ? 1 : 0;
    bool found = false;
    for (const std::size_t first = i; i < pattern.size(); ++i) {
        if (pattern[i] == ']' && i > first) {
            return {i + 1, found != inverted};
        }
        const auto low = static_cast<unsigned char>(pattern[i]);
        auto high = low;
        if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
            high = static_cast<unsigned char>(pattern[i + 2]);
            i += 2;
        }
        const auto value = static_cast<unsigned char>(c);
        found = found || (value >= low && value <= high);
    }
    return {};
}

std::size_t code_point_size(std::string_view text) {
    std::size_t size = 1;
    while (size < text.size() && (static_cast<unsigned char>(text[size]) & 0xC0U) == 0x80U) {
        ++size;
    }
    return size;
}

// How much of pattern and name one step takes; 0 when it does not fit.
struct Step {
    std::size_t pattern = 0;
    std::size_t name = 0;
};
Step step(std::string_view pattern, std::string_view name) {
    if (pattern.empty() || name.empty()) {
        return {};
    }
    if (pattern.front() == '?') {
        return {1, code_point_size(name)};
    }
    if (pattern.front() == '[') {
        const Bracket set = bracket(pattern, name.front());
        if (set.size > 0) {
            return set.takes ? Step{set.size, 1} : Step{};
        }
    }
    if (pattern.front() == '\\' && pattern.size() > 1) {
        return pattern[1] == name.front() ? Step{2, 1} : Step{};
    }
    return pattern.front() == name.front() ? Step{1, 1} : Step{};
}

bool match_parts(
    const std::vector<std::string>& pattern,
    std::size_t p,
    const std::vector<std::string>& names,
    std::size_t n
) {
    // As for stars in a name: only the last "**" ever needs another try.
    std::size_t star = kNone;
    std::size_t star_name = 0;
    while (n < names.size()) {
        if (p < pattern.size() && pattern[p] == "**") {
            star = p++;
            star_name = n;
        } else if (p < pattern.size() && matches_name(pattern[p], names[n])) {
            ++p;
            ++n;
        } else if (star != kNone) {
            p = star + 1;
            n = ++star_name;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == "**") {
        ++p;
    }
    return p == pattern.size();
}

}  // namespace

bool matches_name(std::string_view pattern, std::string_view name) {
    std::size_t p = 0;
    std::size_t n = 0;
    std::size_t star = kNone;
    std::size_t star_name = 0;
    while (n < name.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            star_name = n;
            continue;
        }
        const Step taken = step(pattern.substr(p), name.substr(n));
        if (taken.name > 0) {
            p += taken.pattern;
            n += taken.name;
        } else if (star != kNone) {
            p = star + 1;
            n = ++star_name;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') {
        ++p;
    }
    return p == pattern.size();
}

base::Result<GlobPattern> GlobPattern::parse(std::string_view pattern) {
    std::vector<std::string> expanded;
    if (pattern.empty() || pattern.size() > 4096 || pattern.find('\0') != kNone) {
        return bad_pattern(
            pattern, "is empty, too long or has a NUL; write one such as \"**/*.csv\""
        );
    }
    if (!expand(std::string(pattern), 0, expanded)) {
        return bad_pattern(pattern, "expands to more than 64 patterns; use fewer braces");
    }
    GlobPattern out;
    for (const std::string& one : expanded) {
        Parts parts = fsmount::split_path(one);
        for (const std::string& part : parts) {
            if (part == "..") {
                return bad_pattern(
                    pattern, "has a \"..\" part; set `path` to the directory to search"
                );
            }
        }
        out.alternatives_.push_back(std::move(parts));
    }
    return out;
}

bool GlobPattern::matches(std::string_view relative) const {
    const Parts names = fsmount::split_path(relative);
    for (const Parts& parts : alternatives_) {
        if (match_parts(parts, 0, names, 0)) {
            return true;
        }
    }
    return false;
}

bool GlobPattern::may_match_below(std::string_view relative) const {
    const Parts names = fsmount::split_path(relative);
    for (const Parts& parts : alternatives_) {
        bool possible = true;
        for (std::size_t i = 0; i < names.size(); ++i) {
            if (i < parts.size() && parts[i] == "**") {
                break;
            }
            if (i + 1 >= parts.size() || !matches_name(parts[i], names[i])) {
                possible = false;
                break;
            }
        }
        if (possible) {
            return true;
        }
    }
    return false;
}

}  // namespace ars::tools
