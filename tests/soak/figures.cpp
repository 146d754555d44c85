#include "tests/soak/figures.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include <unistd.h>

namespace ars::soak {

namespace {

std::int64_t entries(const std::string& directory) {
    std::int64_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
        count += entry.path().filename().empty() ? 0 : 1;
    }
    return count;
}

// The parent of a process, from the field after its name; 0 when it is gone.
int parent_of(const std::filesystem::path& process) {
    std::ifstream stat(process / "stat");
    std::string text;
    std::getline(stat, text);
    const std::size_t name_end = text.rfind(')');
    if (name_end == std::string::npos) {
        return 0;
    }
    std::istringstream rest(text.substr(name_end + 1));
    std::string state;
    int parent = 0;
    rest >> state >> parent;
    return parent;
}

std::vector<int> descendants() {
    std::map<int, int> parents;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        const std::string name = entry.path().filename();
        int pid = 0;
        if (std::from_chars(name.data(), name.data() + name.size(), pid).ec == std::errc()) {
            parents[pid] = parent_of(entry.path());
        }
    }
    std::vector<int> below;
    for (const auto& [pid, parent] : parents) {
        int above = parent;
        while (above > 1 && above != ::getpid()) {
            const auto next = parents.find(above);
            above = next == parents.end() ? 0 : next->second;
        }
        if (above == ::getpid()) {
            below.push_back(pid);
        }
    }
    return below;
}

std::int64_t mount_lines() {
    std::ifstream table("/proc/self/mountinfo");
    std::int64_t count = 0;
    for (std::string line; std::getline(table, line);) {
        ++count;
    }
    return count;
}

// Below this process's own group of cgroup v2: none where that is not mounted, as nobody can make
// one then.
std::int64_t cgroup_count() {
    std::ifstream table("/proc/self/cgroup");
    std::int64_t count = 0;
    for (std::string line; std::getline(table, line);) {
        if (!line.starts_with("0::")) {
            continue;
        }
        std::error_code none;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(
                 "/sys/fs/cgroup" + line.substr(3), none
             )) {
            count += entry.is_directory(none) ? 1 : 0;
        }
    }
    return count;
}

std::int64_t resident(const std::string& process) {
    std::ifstream status("/proc/" + process + "/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("VmRSS:")) {
            return std::stol(line.substr(6));
        }
    }
    return 0;
}

// What is opened once for all scopes (a template, a ring) may come while they are counted; a leak
// shows once for each of them.
constexpr std::int64_t kFewDescriptors = 3;

bool row(const char* name, std::int64_t before, std::int64_t after, std::int64_t slack) {
    const bool good = after <= before + slack;
    std::printf(
        "  %-14s %10lld %10lld%s\n",
        name,
        static_cast<long long>(before),
        static_cast<long long>(after),
        good ? "" : "  GREW"
    );
    return good;
}

}  // namespace

Figures take_figures(const std::string& scope_directories) {
    Figures now;
    const std::vector<int> below = descendants();
    now.descriptors = entries("/proc/self/fd");
    now.threads = entries("/proc/self/task");
    now.processes = static_cast<std::int64_t>(below.size());
    now.mounts = mount_lines();
    now.cgroups = cgroup_count();
    now.scope_directories = entries(scope_directories);
    now.resident_kib = resident("self");
    for (const int pid : below) {
        now.children_kib += resident(std::to_string(pid));
    }
    return now;
}

bool report(const std::string& what, const Figures& before, const Figures& after) {
    std::printf("%s\n  %-14s %10s %10s\n", what.c_str(), "", "before", "after");
    bool good = row("descriptors", before.descriptors, after.descriptors, kFewDescriptors);
    good = row("threads", before.threads, after.threads, 0) && good;
    good = row("processes", before.processes, after.processes, 0) && good;
    good = row("mounts", before.mounts, after.mounts, 0) && good;
    good = row("cgroups", before.cgroups, after.cgroups, 0) && good;
    good = row("directories", before.scope_directories, after.scope_directories, 0) && good;
    good = row("resident KiB", before.resident_kib, after.resident_kib, kResidentSlackKib) && good;
    good = row("children KiB", before.children_kib, after.children_kib, kChildrenSlackKib) && good;
    std::fflush(stdout);
    return good;
}

}  // namespace ars::soak
