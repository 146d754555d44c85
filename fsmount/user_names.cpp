#include "fsmount/user_names.hpp"

#include "fsmount/layout.hpp"

#include <algorithm>

namespace ars::fsmount {

namespace {

// The third field of both files is the id.
bool is_about_gem(std::string_view line, std::string_view id) {
    const std::size_t name_end = std::min(line.find(':'), line.size());
    if (line.substr(0, name_end) == "gem") {
        return true;
    }
    std::string_view rest = line.substr(name_end);
    for (int i = 0; i < 2 && !rest.empty(); ++i) {
        rest.remove_prefix(i == 0 ? 1 : std::min(rest.find(':') + 1, rest.size()));
    }
    return rest.substr(0, rest.find(':')) == id;
}

std::string with_line(std::string_view text, std::string_view id, std::string_view own) {
    std::string out;
    while (!text.empty()) {
        const std::size_t feed = text.find('\n');
        const std::string_view line = text.substr(0, feed);
        if (!line.empty() && !is_about_gem(line, id)) {
            out += line;
            out += '\n';
        }
        text.remove_prefix(feed == std::string_view::npos ? text.size() : feed + 1);
    }
    out += own;
    out += '\n';
    return out;
}

}  // namespace

std::string passwd_with_gem(std::string_view passwd) {
    return with_line(passwd, std::to_string(kGemUid), "gem:x:1000:1000:gem:/home/gem:/bin/sh");
}

std::string group_with_gem(std::string_view group) {
    return with_line(group, std::to_string(kGemGid), "gem:x:1000:");
}

}  // namespace ars::fsmount
