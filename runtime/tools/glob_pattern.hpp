// File name patterns: *, ?, [a-z], {a,b} within a part, and ** for any number of directories.
#pragma once

#include "base/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace ars::tools {

class GlobPattern {
  public:
    // Refuses ".." parts, an empty pattern, and braces that expand to more than 64 patterns.
    [[nodiscard]] static base::Result<GlobPattern> parse(std::string_view pattern);

    // `relative` is a path without leading slash.
    [[nodiscard]] bool matches(std::string_view relative) const;
    // Whether something below the directory `relative` could match: walks skip the others.
    [[nodiscard]] bool may_match_below(std::string_view relative) const;

  private:
    using Parts = std::vector<std::string>;
    std::vector<Parts> alternatives_;
};

// One name against one pattern part. Linear in practice, quadratic at worst.
[[nodiscard]] bool matches_name(std::string_view pattern, std::string_view name);

}  // namespace ars::tools
