// What a command wrote, kept within bounds: the head and the tail of each stream and of both
// together, the last of it for who asks by offset, the full text in a log file.
#pragma once

#include "base/fd.hpp"
#include "sandbox/outcome.hpp"
#include "sandbox/process.hpp"

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
    // While more may come, the start of a character at the end is left out.
    [[nodiscard]] Text finish(std::string_view full_text_path, bool more_may_come = false) const;
    // Head and tail as they came.
    [[nodiscard]] std::string bytes() const;

  private:
    [[nodiscard]] std::string_view tail() const;

    std::size_t limit_;
    std::uint64_t total_ = 0;
    std::string head_;
    std::string tail_;
};

// The last bytes of a stream that is read by offset. Memory: at most twice the limit.
class OutputWindow {
  public:
    explicit OutputWindow(std::size_t limit) : limit_(limit) {}
    void append(std::string_view bytes);
    [[nodiscard]] OutputPage read(std::uint64_t offset, std::size_t max_bytes) const;
    [[nodiscard]] std::size_t size() const { return bytes_.size(); }

  private:
    std::size_t limit_;
    std::uint64_t total_ = 0;
    std::string bytes_;
};

class OutputCapture {
  public:
    // `head_tail` and `window` in bytes; a window of 0 keeps nothing to be read by offset.
    OutputCapture(
        std::size_t head_tail,
        std::size_t window,
        std::shared_ptr<base::Fd> log,
        std::string log_guest_path
    );

    void append(int stream, std::string_view bytes);
    // Nothing more will come: what was held back is shown as it is.
    void end();
    // Fills out, err, merged, lossy, omitted_bytes and log_path, and the raw bytes where
    // `outcome.raw` asks for them. Before end(): what there is so far.
    void describe(Outcome& outcome) const;
    [[nodiscard]] const OutputWindow& window() const { return window_; }
    // Frees all but the window.
    void forget();

  private:
    void append_merged(std::string_view bytes);

    HeadTail out_;
    HeadTail err_;
    HeadTail merged_;
    OutputWindow window_;
    bool ended_ = false;
    std::array<std::string, 2>
        unfinished_;  // the start of a character whose rest comes with the next read
    std::shared_ptr<base::Fd> log_;
    std::string log_guest_path_;
    std::uint64_t logged_ = 0;
};

}  // namespace ars::sandbox
