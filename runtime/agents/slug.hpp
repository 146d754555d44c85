// Slugs: the names by which agents are addressed in URLs, thread ids and tool arguments.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace ars::agents {

inline constexpr std::size_t kSlugBytes = 80;         // of any slug
inline constexpr std::size_t kDerivedSlugBytes = 56;  // of one made from a name, before a suffix

// What is wrong with `slug` as an agent's slug, with the remedy; "" when nothing is. Path words of
// the API (backends, default, runs, requests, thread) are no slugs.
[[nodiscard]] std::string check_slug(std::string_view slug);

// "Data Analyst!" -> "data-analyst"; a text without a usable character gives "agent-<12 hex>".
[[nodiscard]] std::string make_slug(std::string_view name);

// `slug`, or the first of `slug`-2, `slug`-3, ... that is not taken, within kSlugBytes.
[[nodiscard]] std::string free_slug(
    std::string_view slug, const std::function<bool(std::string_view)>& taken
);

}  // namespace ars::agents
