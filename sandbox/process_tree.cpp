#include "sandbox/process_tree.hpp"

#include "base/fd.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

namespace ars::sandbox {

namespace {

constexpr int kThreadRounds = 10;

std::string read_small(int proc, const std::string& name, std::size_t max_bytes) {
    std::string text(max_bytes, '\0');
    const base::Fd fd(::openat(proc, name.c_str(), O_RDONLY | O_CLOEXEC));
    const ssize_t n = fd ? ::read(fd.get(), text.data(), text.size()) : -1;
    text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return text;
}

// The value of one "Name:\tvalue" line of a status file.
std::string_view field(std::string_view status, std::string_view name) {
    const std::size_t at = status.find(name);
    if (at == std::string_view::npos) {
        return {};
    }
    const std::string_view rest = status.substr(at + name.size());
    return rest.substr(0, rest.find('\n'));
}

pid_t number(std::string_view text) {
    pid_t value = 0;
    const std::size_t start = std::min(text.find_first_not_of(" \t"), text.size());
    std::from_chars(text.data() + start, text.data() + text.size(), value);
    return value;
}

// Of "NSpid:\t812\t7": the innermost pid, 7.
pid_t last_number(std::string_view text) {
    const std::size_t at = text.find_last_of(" \t");
    return number(at == std::string_view::npos ? text : text.substr(at + 1));
}

// Our own directory name in /proc, 0 when it is not there.
pid_t own_id(int proc) {
    char self[32];
    const ssize_t n = ::readlinkat(proc, "self", self, sizeof self);
    return n > 0 ? number(std::string_view(self, static_cast<std::size_t>(n))) : 0;
}

std::uint64_t kib(std::string_view status, std::string_view name) {
    return static_cast<std::uint64_t>(number(field(status, name)));
}

bool has_ended(std::string_view status) {
    const std::string_view state = field(status, "\nState:");
    return state.starts_with("\tZ") || state.starts_with("\tX");
}

// Of one that has memory to show. Threads that only make the next one and end are stopped for it.
std::optional<std::string> status_of_a_thread(
    int proc, const std::string& process, Freezer& freezer
) {
    const std::string tasks = process + "/task/";
    for (int round = 0; round < kThreadRounds; ++round) {
        DIR* const threads =
            ::fdopendir(::openat(proc, tasks.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (threads == nullptr) {
            return std::nullopt;
        }
        std::optional<std::string> found;
        while (const dirent* entry = found ? nullptr : ::readdir(threads)) {
            std::string status = read_small(proc, tasks + entry->d_name + "/status", 4096);
            if (!field(status, "\nRssAnon:").empty()) {
                found = std::move(status);
            }
        }
        ::closedir(threads);
        if (found) {
            return found;
        }
        freezer.freeze();
    }
    return std::nullopt;
}

}  // namespace

ProcessTree::ProcessTree(int proc, Freezer& freezer) : init_(own_id(proc)) {
    // Opened anew: a duplicated descriptor would share its place in the directory.
    DIR* const directory = ::fdopendir(::openat(proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (directory == nullptr) {
        return;
    }
    while (const dirent* entry = ::readdir(directory)) {
        const pid_t proc_id = number(entry->d_name);
        if (proc_id <= 0) {
            continue;
        }
        freezer.check();
        std::string status = read_small(proc, std::string(entry->d_name) + "/status", 4096);
        Entry& read = entries_.emplace_back();
        read.parent = number(field(status, "\nPPid:"));
        TreeProcess& process = read.process;
        process.pid = last_number(field(status, "\nNSpid:"));
        process.proc_id = proc_id;
        process.zombie = has_ended(status);
        if (process.zombie && number(field(status, "\nThreads:")) > 1) {
            process.zombie = false;
            process.headless = true;
            status = status_of_a_thread(proc, entry->d_name, freezer).value_or("");
        }
        process.suspended = field(status, "\nState:").starts_with("\tD");
        process.memory_kib = kib(status, "\nRssAnon:") + kib(status, "\nRssShmem:");
    }
    ::closedir(directory);
    count_shared_once();
}

// Between vfork and exec a child has its parent's memory and the parent is suspended, which freezes
// the figures. Only its newest child can be that one: others may have memory of their own that is
// just as large.
void ProcessTree::count_shared_once() {
    const std::vector<Entry> counted = entries_;
    for (const Entry& parent : counted) {
        if (!parent.process.suspended) {
            continue;
        }
        const auto newest =
            std::find_if(entries_.rbegin(), entries_.rend(), [&parent](const Entry& child) {
                return child.parent == parent.process.proc_id &&
                       child.process.memory_kib == parent.process.memory_kib;
            });
        if (newest != entries_.rend()) {
            newest->process.memory_kib = 0;
        }
    }
}

void ProcessTree::add_children(pid_t proc_id, std::vector<TreeProcess>& out) const {
    for (const Entry& entry : entries_) {
        if (entry.parent == proc_id) {
            out.push_back(entry.process);
        }
    }
}

std::vector<TreeProcess> ProcessTree::below(pid_t child) const {
    std::vector<TreeProcess> tree;
    for (const TreeProcess& candidate : children_of_init()) {
        if (candidate.pid == child) {
            add_children(candidate.proc_id, tree);
        }
    }
    // The list grows while it is walked; the bound stands against a table read while pids were
    // reused.
    for (std::size_t i = 0; i < tree.size() && tree.size() <= entries_.size(); ++i) {
        add_children(tree[i].proc_id, tree);
    }
    return tree;
}

std::vector<TreeProcess> ProcessTree::children_of_init() const {
    std::vector<TreeProcess> children;
    add_children(init_, children);
    return children;
}

std::optional<std::uint64_t> proportional_memory_kib(int proc, pid_t proc_id) {
    const std::string text =
        "\n" + read_small(proc, std::to_string(proc_id) + "/smaps_rollup", 4096);
    const std::string_view anonymous = field(text, "\nPss_Anon:");
    if (anonymous.empty()) {
        // One that ended meanwhile has no memory left to share.
        const std::string status = read_small(proc, std::to_string(proc_id) + "/status", 4096);
        return field(status, "\nRssAnon:").empty() ? std::optional<std::uint64_t>(0) : std::nullopt;
    }
    return static_cast<std::uint64_t>(number(anonymous)) +
           static_cast<std::uint64_t>(number(field(text, "\nPss_Shmem:")));
}

pid_t parent_of(int proc, pid_t thread) {
    if (own_id(proc) != ::getpid()) {
        return 0;
    }
    const std::string status = read_small(proc, std::to_string(thread) + "/status", 4096);
    return number(field(status, "\nPPid:"));
}

std::string command_line(int proc, pid_t proc_id, std::size_t max_bytes) {
    const std::string directory = std::to_string(proc_id);
    std::string text = read_small(proc, directory + "/cmdline", max_bytes);
    while (!text.empty() && text.back() == '\0') {
        text.pop_back();
    }
    std::replace(text.begin(), text.end(), '\0', ' ');
    if (text.empty()) {
        text = read_small(proc, directory + "/comm", 64);
        text.resize(std::min(text.find('\n'), text.size()));
    }
    return text;
}

}  // namespace ars::sandbox
