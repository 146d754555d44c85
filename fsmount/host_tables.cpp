#include "fsmount/host_tables.hpp"

#include "base/fd.hpp"
#include "base/limits.hpp"

#include <algorithm>

namespace ars::fsmount {

namespace {

constexpr std::size_t kTableBytes = 16 * base::limits::kMiB;

template <class Visit>
void each_line(std::string_view text, Visit visit) {
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        visit(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
}

// What follows the first `count` fields, or nothing.
std::string_view after_fields(std::string_view line, int count) {
    for (int i = 0; i < count; ++i) {
        line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
        line.remove_prefix(std::min(line.find(' '), line.size()));
    }
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    return line;
}

bool is_octal(char c) { return c >= '0' && c <= '7'; }

std::string decode_octal(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\' && i + 3 < text.size() && is_octal(text[i + 1]) &&
            is_octal(text[i + 2]) && is_octal(text[i + 3])) {
            const int value =
                (text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0');
            out += static_cast<char>(value);
            i += 3;
        } else {
            out += text[i];
        }
    }
    return out;
}

}  // namespace

std::vector<std::string> parse_mount_points(std::string_view mountinfo) {
    std::vector<std::string> out;
    each_line(mountinfo, [&](std::string_view line) {
        const std::string_view rest = after_fields(line, 4);
        const std::string_view point = rest.substr(0, rest.find(' '));
        if (point.starts_with('/')) {
            out.push_back(decode_octal(point));
        }
    });
    return out;
}

std::vector<std::string> parse_socket_paths(std::string_view net_unix) {
    std::vector<std::string> out;
    each_line(net_unix, [&](std::string_view line) {
        const std::string_view path = after_fields(line, 7);
        if (path.starts_with('/')) {
            out.emplace_back(path);
        }
    });
    return out;
}

std::vector<std::string> host_mount_points() {
    const auto text = base::read_file("/proc/self/mountinfo", kTableBytes);
    return text ? parse_mount_points(*text) : std::vector<std::string>();
}

std::vector<std::string> host_socket_paths() {
    const auto text = base::read_file("/proc/net/unix", kTableBytes);
    return text ? parse_socket_paths(*text) : std::vector<std::string>();
}

bool is_within(std::string_view path, std::string_view directory) {
    return path.starts_with(directory) &&
           (path.size() == directory.size() || directory.ends_with('/') ||
            path[directory.size()] == '/');
}

}  // namespace ars::fsmount
