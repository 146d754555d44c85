// What a process holds of the machine, to be compared before and after much work.
#pragma once

#include <cstdint>
#include <string>

namespace ars::soak {

struct Figures {
    std::int64_t descriptors = 0;
    std::int64_t threads = 0;
    std::int64_t processes = 0;  // everything below this one, zombies included
    std::int64_t mounts = 0;     // lines of this process's mount table
    std::int64_t cgroups = 0;    // below this process's own
    std::int64_t scope_directories = 0;
    std::int64_t resident_kib = 0;
    std::int64_t children_kib = 0;  // resident, of everything below this one: templates and inits
};

[[nodiscard]] Figures take_figures(const std::string& scope_directories);

// Resident memory may grow by this much: heap that is kept for the next command.
inline constexpr std::int64_t kResidentSlackKib = 8 * 1024;
inline constexpr std::int64_t kChildrenSlackKib = 512;

// Prints both in a table; true when nothing has grown.
bool report(const std::string& what, const Figures& before, const Figures& after);

}  // namespace ars::soak
