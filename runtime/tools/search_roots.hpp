// Where glob and grep start: one directory, or from "/" exactly the two roots that can be read.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"
#include "fsmount/paths.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace ars::tools {

struct SearchRoot {
    base::Fd directory;
    std::string guest;  // without a slash at its end, any bytes
};

[[nodiscard]] base::Result<std::vector<SearchRoot>> open_search_roots(
    const fsmount::Paths& paths, std::string_view path
);

}  // namespace ars::tools
