#include "tests/support/process_family.hpp"

#include "tests/support/process.hpp"

#include <charconv>
#include <filesystem>
#include <sstream>
#include <thread>
#include <vector>

namespace ars::tests {

namespace {

struct Stat {
    std::string state;
    pid_t parent = 0;
    std::string started;
};

// Of /proc/<pid>/stat; a process that is gone has no state.
Stat stat_of(pid_t pid) {
    const std::string text = read_text("/proc/" + std::to_string(pid) + "/stat");
    const std::size_t name_end = text.rfind(')');
    Stat stat;
    if (name_end == std::string::npos) {
        return stat;
    }
    std::istringstream fields(text.substr(name_end + 1));
    fields >> stat.state >> stat.parent;
    for (int field = 5; field <= 22; ++field) {
        fields >> stat.started;
    }
    return stat;
}

}  // namespace

Family family_of(pid_t root) {
    std::map<pid_t, Stat> all;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        const std::string name = entry.path().filename();
        pid_t pid = 0;
        if (std::from_chars(name.data(), name.data() + name.size(), pid).ec == std::errc()) {
            all[pid] = stat_of(pid);
        }
    }
    Family family;
    for (const auto& [pid, stat] : all) {
        pid_t above = pid;
        while (above > 1 && above != root) {
            const auto next = all.find(above);
            above = next == all.end() ? 0 : next->second.parent;
        }
        if (above == root) {
            family[pid] = stat.started;
        }
    }
    return family;
}

std::string left_of(const Family& family, std::chrono::milliseconds limit) {
    const auto until = std::chrono::steady_clock::now() + limit;
    for (;;) {
        std::string left;
        for (const auto& [pid, started] : family) {
            const Stat now = stat_of(pid);
            if (!now.state.empty() && now.state != "Z" && now.started == started) {
                left += std::to_string(pid) + " " + now.state + " " +
                        read_text("/proc/" + std::to_string(pid) + "/cmdline").substr(0, 80) + "\n";
            }
        }
        if (left.empty() || std::chrono::steady_clock::now() > until) {
            return left;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
}

}  // namespace ars::tests
