#include "server/line_reader.hpp"

#include <cerrno>

#include <poll.h>
#include <unistd.h>

namespace ars::server {

namespace {

constexpr int kStopPollMs = 100;

}  // namespace

LineReader::Line LineReader::next() {
    bool skipping = false;
    for (;;) {
        if (const std::size_t at = pending_.find('\n'); at != std::string::npos) {
            Line line{pending_.substr(0, at), false, skipping};
            pending_.erase(0, at + 1);
            return line;
        }
        if (end_) {
            Line line{std::move(pending_), false, skipping};
            pending_.clear();
            line.end = line.text.empty() && !skipping;
            return line;
        }
        if (pending_.size() > kBatchLineBytes) {
            pending_.clear();
            skipping = true;
        }
        read_more();
    }
}

void LineReader::read_more() {
    pollfd readable{fd_, POLLIN, 0};
    if (stopped_) {
        pending_.clear();
        end_ = true;
        return;
    }
    if (::poll(&readable, 1, kStopPollMs) == 0) {
        return;
    }
    char buffer[65536];
    const ssize_t n = ::read(fd_, buffer, sizeof buffer);
    if (n > 0) {
        pending_.append(buffer, static_cast<std::size_t>(n));
    } else if (n == 0 || errno != EINTR) {
        end_ = true;
    }
}

}  // namespace ars::server
