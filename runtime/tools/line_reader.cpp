#include "runtime/tools/line_reader.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <unistd.h>

namespace ars::tools {

namespace {

constexpr std::size_t kReadBytes = 64 * 1024;

}  // namespace

LineReader::LineReader(int fd, std::size_t max_piece)
    : fd_(fd), max_piece_(max_piece), buffer_(max_piece + kReadBytes, '\0') {}

bool LineReader::fill() {
    if (at_end_ || error_ != 0) {
        return false;
    }
    if (begin_ > 0) {
        std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
        end_ -= begin_;
        searched_ -= begin_;
        begin_ = 0;
    }
    for (;;) {
        const ssize_t n =
            ::read(fd_, buffer_.data() + end_, std::min(kReadBytes, buffer_.size() - end_));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            error_ = errno;
            return false;
        }
        at_end_ = n == 0;
        end_ += static_cast<std::size_t>(n);
        return n > 0;
    }
}

LineReader::Piece LineReader::take(std::size_t size, std::size_t newline, bool ends_line) {
    const Piece piece{std::string_view(buffer_).substr(begin_, size), ends_line, newline == 1};
    begin_ += size + newline;
    searched_ = begin_;
    consumed_ += size + newline;
    return piece;
}

std::optional<LineReader::Piece> LineReader::next() {
    for (;;) {
        const void* found = std::memchr(buffer_.data() + searched_, '\n', end_ - searched_);
        if (found != nullptr) {
            const auto at =
                static_cast<std::size_t>(static_cast<const char*>(found) - buffer_.data());
            if (at - begin_ > max_piece_) {
                return take(max_piece_, 0, false);
            }
            return take(at - begin_, 1, true);
        }
        searched_ = end_;
        if (end_ - begin_ > max_piece_) {
            return take(max_piece_, 0, false);
        }
        if (!fill()) {
            break;
        }
    }
    if (error_ != 0 || begin_ == end_) {
        return std::nullopt;
    }
    return take(end_ - begin_, 0, true);
}

}  // namespace ars::tools
