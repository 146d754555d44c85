// The lines of `ars exec --batch` as they come in.
#pragma once

#include "base/limits.hpp"

#include <atomic>
#include <cstddef>
#include <string>

namespace ars::server {

inline constexpr std::size_t kBatchLineBytes = 32 * base::limits::kMiB;  // stdin travels in it

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
