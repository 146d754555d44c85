// The mount plan from any configuration and the tables of any host. Lines of the input: "h PATH"
// hidden, "d PATH" data_dir, "u PATH" users_dir, "v NAME" visible, anything else a line of a mount
// table and of a socket table. However they are mixed, the plan shows nothing but the image, and
// covers every hidden path that the image would show.
#include "fsmount/host_tables.hpp"
#include "fsmount/layout.hpp"
#include "fsmount/mount_plan.hpp"
#include "tests/fuzz/scratch.hpp"

#include <climits>

#include <algorithm>
#include <array>
#include <cstdlib>

#include <sys/stat.h>
#include <unistd.h>

namespace {

using namespace ars;
using namespace ars::fsmount;

PlanOptions options_of(std::string_view text, std::string& tables) {
    PlanOptions options;
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        const std::string rest(line.substr(std::min<std::size_t>(line.size(), 2)));
        if (line.starts_with("h ")) {
            options.hidden.push_back(rest);
        } else if (line.starts_with("d ")) {
            options.data_dir = rest;
        } else if (line.starts_with("u ")) {
            options.users_dir = rest;
        } else if (line.starts_with("v ")) {
            options.extra_visible.push_back(rest);
        } else {
            tables += line;
            tables += '\n';
        }
    }
    return options;
}

std::string real(const std::string& path) {
    std::array<char, PATH_MAX> out{};
    return ::realpath(path.c_str(), out.data()) == nullptr ? "" : out.data();
}

bool is_clean(const std::string& path) {
    return path.starts_with('/') && (path + "/").find("/../") == std::string::npos &&
           path.find("//") == std::string::npos && path.find('\0') == std::string::npos;
}

void check_tables(const std::string& text) {
    for (const std::string& point : parse_mount_points(text)) {
        require(point.starts_with('/'));
    }
    for (const std::string& socket : parse_socket_paths(text)) {
        require(socket.starts_with('/'));
    }
}

void check_plan(const MountPlan& plan, const PlanOptions& options, const Workspace& workspace) {
    std::vector<Mount> all = *plan.image;
    all.insert(all.end(), plan.mounts.begin(), plan.mounts.end());
    std::vector<std::string> shown;
    std::vector<std::string> covered;
    for (const Mount& mount : all) {
        require(is_clean(mount.guest));
        const auto below = [&](const std::string& top) { return is_within(mount.guest, top); };
        switch (mount.kind) {
            case MountKind::bind:
                if (mount.guest == kUserData) {
                    require(mount.source == workspace.user_data_source() && !mount.read_only);
                    break;
                }
                require(mount.read_only);
                if (mount.guest != kSkills && mount.guest != "/proc") {
                    require(mount.source == mount.guest);
                    require(mount.guest.find('/', 1) == std::string::npos && mount.guest != "/");
                    shown.push_back(mount.guest);
                }
                break;
            case MountKind::hide_file:
            case MountKind::hide_directory:
                require(mount.guest == kSkills || std::ranges::any_of(shown, below));
                covered.push_back(mount.guest);
                break;
            default:
                break;
        }
    }
    std::vector<std::string> secret = options.hidden;
    secret.push_back(options.data_dir);
    secret.push_back(options.users_dir);
    for (const std::string& path : secret) {
        const std::string where = real(path);
        const auto holds = [&](const std::string& top) { return is_within(where, top); };
        require(
            where.empty() || std::ranges::none_of(shown, holds) ||
            std::ranges::any_of(covered, holds)
        );
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const tests::Scratch scratch;
    std::string tables;
    const PlanOptions options = options_of({reinterpret_cast<const char*>(data), size}, tables);
    check_tables(tables);
    const auto plan = make_mount_plan(*scratch.workspace(), options);
    require(plan.has_value());
    check_plan(*plan, options, *scratch.workspace());
    return 0;
}
