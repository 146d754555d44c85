// What a command wrote, kept within bounds: the head and the tail of each stream and of both
// together, the full text in a log file.
#pragma once

#include "base/fd.hpp"
#include "sandbox/outcome.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace ars::sandbox {

// Head and tail of one stream of bytes. Memory: at most one and a half times the limit.
class HeadTail {
  public:
    explicit HeadTail(std::size_t limit) : limit_(limit) {}
    void append(std::string_view bytes);

    struct Text {
        std::string text;  // valid UTF-8; a line between head and tail says what is missing
        bool lossy = false;
        std::uint64_t omitted = 0;
    };
    [[nodiscard]] Text finish(std::string_view full_text_path) const;

  private:
    std::size_t limit_;
    std::uint64_t total_ = 0;
    std::string head_;
    std::string tail_;
};

class OutputCapture {
  public:
    OutputCapture(std::size_t limit, std::shared_ptr<base::Fd> log, std::string log_guest_path);

    void append(int stream, std::string_view bytes);
    // Fills out, err, merged, lossy, omitted_bytes and log_path.
    void finish(Outcome& outcome);

  private:
    void append_merged(std::string_view bytes);

    HeadTail out_;
    HeadTail err_;
    HeadTail merged_;
    std::array<std::string, 2>
        unfinished_;  // the start of a character whose rest comes with the next read
    std::shared_ptr<base::Fd> log_;
    std::string log_guest_path_;
    std::uint64_t logged_ = 0;
};

}  // namespace ars::sandbox
