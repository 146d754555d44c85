#include "runtime/agents/slug.hpp"

#include "base/digest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace ars::agents {

namespace {

constexpr std::array<std::string_view, 5> kReserved = {
    "backends", "default", "runs", "requests", "thread"
};

bool is_slug_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

// Lower-case, every other character a dash, no dash at either end.
std::string normalized(std::string_view text) {
    std::string out;
    for (const char c : text) {
        const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        out += is_slug_char(lower) ? lower : '-';
    }
    const std::size_t first = out.find_first_not_of('-');
    if (first == std::string::npos) {
        return {};
    }
    return out.substr(first, out.find_last_not_of('-') - first + 1);
}

}  // namespace

std::string check_slug(std::string_view slug) {
    if (slug.empty()) {
        return "must not be empty";
    }
    if (slug.size() > kSlugBytes) {
        return fmt::format("must be at most {} characters long, found {}", kSlugBytes, slug.size());
    }
    if (const std::string fixed = normalized(slug); fixed != slug) {
        return fmt::format(
            "\"{}\" is not a slug (lower-case letters, digits, \"-\" and \"_\"){}",
            slug,
            fixed.empty() ? "" : "; write \"" + fixed + "\""
        );
    }
    if (std::find(kReserved.begin(), kReserved.end(), slug) != kReserved.end()) {
        return fmt::format(
            "\"{}\" is a path word of the API (backends, default, runs, requests, thread); "
            "choose another slug",
            slug
        );
    }
    return {};
}

std::string make_slug(std::string_view name) {
    std::string slug = normalized(name);
    if (slug.size() > kDerivedSlugBytes) {
        slug.resize(kDerivedSlugBytes);
        slug.resize(slug.find_last_not_of('-') + 1);
    }
    if (slug.empty()) {
        constexpr std::size_t kHexDigits = 12;
        return "agent-" + base::sha256_hex(base::random_uuid()).substr(0, kHexDigits);
    }
    return slug;
}

std::string free_slug(std::string_view slug, const std::function<bool(std::string_view)>& taken) {
    std::string candidate(slug);
    for (std::size_t n = 2; taken(candidate); ++n) {
        const std::string suffix = "-" + std::to_string(n);
        candidate = std::string(slug.substr(0, kSlugBytes - suffix.size())) + suffix;
    }
    return candidate;
}

}  // namespace ars::agents
