// One line of `ars exec --batch` as a command.
#pragma once

#include "base/deadline.hpp"
#include "base/result.hpp"
#include "sandbox/scope.hpp"

#include <atomic>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ars::server {

inline constexpr std::size_t kBatchLineBytes = 32 * base::limits::kMiB;  // stdin travels in it

// {"command": "sh text" | [argv], "timeout": "2s", "stdin": "..."}; other keys are errors.
[[nodiscard]] base::Result<sandbox::Command> parse_batch_line(
    std::string_view line,
    base::milliseconds timeout,
    const std::map<std::string, std::string>& environment
);

// A command in the workspace.
[[nodiscard]] sandbox::Command exec_command(
    std::vector<std::string> argv,
    base::milliseconds timeout,
    std::map<std::string, std::string> environment
);

// Lines of a descriptor, read blocking: off the I/O thread.
class LineReader {
  public:
    explicit LineReader(int fd) : fd_(fd) {}
    struct Line {
        std::string text;
        bool end = false;  // nothing follows, `text` is empty
        bool too_long = false;
    };
    [[nodiscard]] Line next();
    // From another thread: next() then returns the end soon, whether or not the descriptor has
    // more.
    void stop() { stopped_ = true; }

  private:
    void read_more();

    int fd_;
    std::atomic<bool> stopped_{false};
    std::string pending_;
    bool end_ = false;
};

}  // namespace ars::server
