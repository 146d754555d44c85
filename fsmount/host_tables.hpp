// What the kernel says about the host: where something is mounted, and where sockets are bound.
// Internal to the room.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ars::fsmount {

// The mount points of a mountinfo text, "\040" and its like decoded, in its order.
[[nodiscard]] std::vector<std::string> parse_mount_points(std::string_view mountinfo);
// The absolute path names of a /proc/net/unix text; abstract names are left out.
[[nodiscard]] std::vector<std::string> parse_socket_paths(std::string_view net_unix);

[[nodiscard]] std::vector<std::string> host_mount_points();
[[nodiscard]] std::vector<std::string> host_socket_paths();

// Whether `path` is `directory` or lies below it.
[[nodiscard]] bool is_within(std::string_view path, std::string_view directory);

}  // namespace ars::fsmount
