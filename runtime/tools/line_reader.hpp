// Reads a file line by line in bounded memory, however long its lines are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ars::tools {

class LineReader {
  public:
    // Borrows `fd`. A line longer than `max_piece` comes in pieces.
    LineReader(int fd, std::size_t max_piece);

    struct Piece {
        std::string_view text;     // without the newline; until the next call
        bool ends_line = true;     // false: the next piece belongs to the same line
        bool has_newline = false;  // false for the last line of a file that does not end with one
    };
    // Nothing at the end of the file, or after an error.
    [[nodiscard]] std::optional<Piece> next();

    [[nodiscard]] std::uint64_t bytes_consumed() const { return consumed_; }
    [[nodiscard]] int error() const { return error_; }  // errno, 0 = none

  private:
    bool fill();
    Piece take(std::size_t size, std::size_t newline, bool ends_line);

    int fd_;
    std::size_t max_piece_;
    std::string buffer_;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    std::size_t searched_ = 0;  // no newline between begin_ and here
    std::uint64_t consumed_ = 0;
    bool at_end_ = false;
    int error_ = 0;
};

}  // namespace ars::tools
