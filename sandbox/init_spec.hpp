// What a template and a scope's init are told by the server, and its flat form. Built by the
// launcher from a ScopeSpec; the init decides nothing.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"
#include "fsmount/access_plan.hpp"
#include "fsmount/mount_plan.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ars::sandbox {

// `mounts[i].fd` travels beside it as a descriptor.
struct InitSpec {
    std::string hostname;
    bool own_network = true;
    bool proxy_listener = false;  // listen for the allow-list's proxy on 127.0.0.1
    std::uint32_t processes = 0;
    std::uint64_t file_size = 0;
    std::uint32_t open_files = 0;
    std::uint64_t cpu_seconds = 0;  // 0 = no limit
    std::uint64_t memory = 0;       // bytes that the init's watch allows, 0 = no watch
    std::string seccomp;            // an array of sock_filter
    std::vector<fsmount::Mount> mounts;
    // Of the landlock tier, in the place of `mounts`.
    std::vector<fsmount::AccessRule> access;
    std::string private_tmp;
};

[[nodiscard]] std::string encode_spec(const InitSpec& spec);
// `fds` are taken in order by the mounts that had one.
[[nodiscard]] base::Result<InitSpec> decode_spec(std::string_view bytes, std::vector<base::Fd> fds);

}  // namespace ars::sandbox
