#include "sandbox/cgroup.hpp"

#include "base/fd.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <sstream>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace ars::sandbox {

namespace {

constexpr std::size_t kFileBytes = 1024 * 1024;
constexpr int kMoves = 10;  // while processes keep forking
constexpr std::string_view kServerLeaf = "ars-server";
constexpr std::uint32_t kOwnProcesses = 8;  // of a scope, beside its tools'
constexpr std::string_view kScopePrefix = "ars-scope-";

std::unexpected<base::Error> missing(const std::string& what, int error) {
    return base::fail_errno("no_cgroup", what, error);
}

// 0 or an errno. Interface files take one write.
int write_value(const std::string& path, const std::string& value) {
    const base::Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!file) {
        return errno;
    }
    return ::write(file.get(), value.data(), value.size()) < 0 ? errno : 0;
}

std::vector<std::string> words(const std::string& path) {
    const auto text = base::read_file(path, kFileBytes);
    std::istringstream in(text ? *text : std::string());
    std::vector<std::string> found;
    for (std::string word; in >> word;) {
        found.push_back(word);
    }
    return found;
}

bool has_controllers(const std::string& file) {
    bool memory = false;
    bool pids = false;
    for (const std::string& name : words(file)) {
        memory = memory || name == "memory";
        pids = pids || name == "pids";
    }
    return memory && pids;
}

std::uint64_t number(std::string_view text) {
    std::uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

// Everything in `from`, ourselves included: a cgroup with processes may not have controllers for
// its children. 0 or an errno.
int move_all(const std::string& from, const std::string& to) {
    for (int round = 0; round < kMoves; ++round) {
        const std::vector<std::string> pids = words(from + "/cgroup.procs");
        if (pids.empty()) {
            return 0;
        }
        for (const std::string& pid : pids) {
            const int error = write_value(to + "/cgroup.procs", pid);
            if (error != 0 && error != ESRCH) {
                return error;
            }
        }
    }
    return EBUSY;
}

bool in_server_leaf(std::string_view directory) {
    return directory.substr(directory.rfind('/') + 1) == kServerLeaf;
}

std::string parent_of(const std::string& directory) {
    return directory.substr(0, directory.rfind('/'));
}

// `own` is its name in /proc/self/cgroup.
bool is_delegated(const std::string& directory, std::string_view own) {
    struct stat info{};
    if (::stat((directory + "/cgroup.type").c_str(), &info) != 0) {
        return false;  // the machine's root
    }
    std::array<char, 2> mark{};
    return own == "/" || (info.st_uid != 0 && info.st_uid == ::geteuid()) ||
           ::getxattr(directory.c_str(), "user.delegate", mark.data(), mark.size()) > 0 ||
           ::getxattr(directory.c_str(), "trusted.delegate", mark.data(), mark.size()) > 0;
}

// Empty ones only: a scope that another server runs here keeps its own.
void remove_leftovers(const std::string& directory) {
    DIR* const open = ::opendir(directory.c_str());
    if (open == nullptr) {
        return;
    }
    while (const dirent* entry = ::readdir(open)) {
        if (std::string_view(entry->d_name).starts_with(kScopePrefix)) {
            ::rmdir((directory + "/" + entry->d_name).c_str());
        }
    }
    ::closedir(open);
}

}  // namespace

// --- one scope ----------------------------------------------------------------------------------

ScopeCgroup::ScopeCgroup(ScopeCgroup&& other) noexcept
    : directory_(std::exchange(other.directory_, {})) {}

ScopeCgroup& ScopeCgroup::operator=(ScopeCgroup&& other) noexcept {
    std::swap(directory_, other.directory_);
    return *this;
}

ScopeCgroup::~ScopeCgroup() {
    if (!remove()) {
        kill();
        remove();
    }
}

base::Result<void> ScopeCgroup::add(pid_t pid) const {
    if (const int error = write_value(directory_ + "/cgroup.procs", std::to_string(pid));
        error != 0) {
        return missing("move the scope into " + directory_, error);
    }
    return {};
}

bool ScopeCgroup::kill() const {
    return !directory_.empty() && write_value(directory_ + "/cgroup.kill", "1") == 0;
}

bool ScopeCgroup::remove() {
    if (!directory_.empty() && ::rmdir(directory_.c_str()) != 0 && errno != ENOENT) {
        return false;
    }
    directory_.clear();
    return true;
}

ScopeCgroup::Memory ScopeCgroup::memory() const {
    Memory memory;
    const std::vector<std::string> events = words(directory_ + "/memory.events");
    for (std::size_t i = 0; i + 1 < events.size(); i += 2) {
        if (events[i] == "oom_kill") {
            memory.oom_kills = number(events[i + 1]);
        }
    }
    if (const std::vector<std::string> peak = words(directory_ + "/memory.peak"); !peak.empty()) {
        memory.peak_bytes = number(peak.front());
    }
    return memory;
}

// --- the tree -----------------------------------------------------------------------------------

base::Result<std::string> CgroupTree::find() {
    const auto own = base::read_file("/proc/self/cgroup", kFileBytes);
    const auto mounts = base::read_file("/proc/self/mountinfo", kFileBytes);
    const std::string directory = own && mounts ? cgroup_directory(*own, *mounts) : std::string();
    if (directory.empty()) {
        return missing("find a cgroup v2 of our own", ENOENT);
    }
    std::string_view name = *own;
    name.remove_prefix(name.find("0::") + 3);
    name = name.substr(0, name.find('\n'));
    std::string ours = directory;
    if (in_server_leaf(directory)) {
        ours = parent_of(directory);
        name = name == "/ars-server" ? "/" : name;
    }
    struct statvfs mounted{};
    if (::statvfs(ours.c_str(), &mounted) == 0 && (mounted.f_flag & ST_RDONLY) != 0) {
        return missing("write to " + ours, EROFS);
    }
    if (!has_controllers(ours + "/cgroup.controllers")) {
        return missing("find the memory and pids controllers in " + ours, ENOTSUP);
    }
    if (!is_delegated(ours, name)) {
        return missing("use " + ours + ", which is not delegated to us", EPERM);
    }
    return directory;
}

base::Result<CgroupTree> CgroupTree::prepare() {
    const auto directory = find();
    return directory ? prepare_in(*directory) : std::unexpected(directory.error());
}

base::Result<CgroupTree> CgroupTree::prepare_in(const std::string& directory) {
    const std::string parent = parent_of(directory);
    if (in_server_leaf(directory) && has_controllers(parent + "/cgroup.subtree_control")) {
        remove_leftovers(parent);
        return CgroupTree(parent);
    }
    if (!has_controllers(directory + "/cgroup.controllers")) {
        return missing("find the memory and pids controllers in " + directory, ENOTSUP);
    }
    const std::string leaf = directory + "/" + std::string(kServerLeaf);
    if (::mkdir(leaf.c_str(), 0755) != 0 && errno != EEXIST) {
        return missing("mkdir " + leaf, errno);
    }
    int error = EBUSY;
    for (int round = 0; round < kMoves && error == EBUSY; ++round) {
        error = move_all(directory, leaf);
        if (error == 0) {
            // EBUSY: something was started here meanwhile.
            error = write_value(directory + "/cgroup.subtree_control", "+memory +pids");
        }
    }
    if (error != 0) {
        (void)move_all(leaf, directory);
        ::rmdir(leaf.c_str());
        return missing("enable controllers in " + directory, error);
    }
    remove_leftovers(directory);
    return CgroupTree(directory);
}

base::Result<ScopeCgroup> CgroupTree::make(
    std::string_view name, std::uint64_t memory, std::uint32_t processes
) const {
    const std::string directory = directory_ + "/" + std::string(kScopePrefix) + std::string(name);
    if (::mkdir(directory.c_str(), 0755) != 0) {
        return missing("mkdir " + directory, errno);
    }
    ScopeCgroup made(directory);
    // One process is killed at a time, as the kernel chooses: a command is not all of its scope.
    const std::pair<const char*, std::string> values[] = {
        {"/memory.max", std::to_string(memory)},
        {"/memory.oom.group", "0"},
        {"/pids.max", std::to_string(processes)},
    };
    for (const auto& [file, value] : values) {
        if (const int error = write_value(directory + file, value); error != 0) {
            return missing("write " + directory + file, error);
        }
    }
    (void)write_value(directory + "/memory.swap.max", "0");  // absent without swap
    return made;
}

base::Result<void> CgroupTree::hand_over(uid_t uid, gid_t gid) const {
    for (const char* name :
         {"", "/cgroup.procs", "/cgroup.subtree_control", "/ars-server/cgroup.procs"}) {
        const std::string path = directory_ + name;
        if (::chown(path.c_str(), uid, gid) != 0) {
            return missing("chown " + path, errno);
        }
    }
    return {};
}

ScopeCgroup cgroup_of(const Policy& policy, const MakeCgroup& make, std::uint64_t number) {
    if (!make || policy.memory == 0) {
        return {};
    }
    auto made = make(
        std::to_string(::getpid()) + "-" + std::to_string(number),
        policy.memory,
        policy.processes + kOwnProcesses
    );
    return made ? std::move(*made) : ScopeCgroup();
}

std::string cgroup_directory(std::string_view own, std::string_view mountinfo) {
    std::string path;
    std::istringstream lines{std::string(own)};
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("0::")) {
            path = line.substr(3);
        }
    }
    if (path.empty() || path.starts_with("/..")) {
        return {};
    }
    std::istringstream mounts{std::string(mountinfo)};
    for (std::string line; std::getline(mounts, line);) {
        std::istringstream fields(line);
        std::string skip;
        std::string root;
        std::string point;
        fields >> skip >> skip >> skip >> root >> point;
        if (line.find(" - cgroup2 ") == std::string::npos || !path.starts_with(root)) {
            continue;
        }
        const std::string below = root == "/" ? path : path.substr(root.size());
        if (below.empty() || below == "/") {
            return point;
        }
        if (below.front() == '/') {
            return point + below;
        }
    }
    return {};
}

}  // namespace ars::sandbox
