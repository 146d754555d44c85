// What is asked of a scope: one command with its environment, input, limits and bounds.
#pragma once

#include "base/fd.hpp"
#include "base/limits.hpp"
#include "sandbox/outcome.hpp"
#include "sandbox/resource_limits.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ars::sandbox {

struct TerminalSize {
    std::uint16_t rows = 24;
    std::uint16_t columns = 80;
};

struct Command {
    std::vector<std::string> argv;  // argv[0] is looked up in PATH of `environment`
    std::map<std::string, std::string> environment;  // complete: see default_environment()
    std::string cwd;                                 // guest path
    std::optional<std::string> stdin_data;           // nullopt = /dev/null
    bool stdin_open = false;  // stdin does not end after `stdin_data`: Process::write() goes on
    // A terminal of this size is stdin, stdout and stderr, and the command's controlling one. All
    // output is then stream 1, and input is open until close_input().
    std::optional<TerminalSize> terminal;
    ResourceLimits limits;
    base::milliseconds timeout = base::limits::kCommandTimeout;  // hard: then the tree is killed
    std::size_t capture_bytes = base::limits::kToolResultBytes;  // head + tail of each stream
    bool raw = false;                                            // the outcome shows bytes
    // The full merged output goes here as it comes, up to limits::kCommandLogBytes; absent = not
    // kept.
    std::shared_ptr<base::Fd> log;
    std::string log_guest_path;
    // Live output on the I/O thread (stream 1 or 2); only buffers. False stops the reading, and so
    // in the end the command, until Process::resume_output().
    std::function<bool(int stream, std::string_view bytes)> on_output;
};

// HOME, PATH, TMPDIR, LANG, caches and the non-interactive hints every tool gets (no secrets,
// nothing of ours).
[[nodiscard]] std::map<std::string, std::string> default_environment();

}  // namespace ars::sandbox
