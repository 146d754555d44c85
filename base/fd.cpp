#include "base/fd.hpp"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace ars::base {

void Fd::reset() noexcept {
    if (raw_ >= 0) {
        // close(2) frees the number even when it fails, so there is nothing to retry.
        ::close(raw_);
        raw_ = -1;
    }
}

Result<Pipe> make_pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        return fail_errno("pipe_failed", "pipe2", errno);
    }
    return Pipe{Fd(ends[0]), Fd(ends[1])};
}

Result<Fd> open_file(const std::string& path, int flags, unsigned mode) {
    Fd fd(::open(path.c_str(), flags | O_CLOEXEC, static_cast<mode_t>(mode)));
    if (!fd) {
        return fail_errno("open_failed", "open " + path, errno);
    }
    return fd;
}

Result<Fd> duplicate(int fd) {
    Fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
    if (!copy) {
        return fail_errno("dup_failed", "dup", errno);
    }
    return copy;
}

Result<void> write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::write(fd, bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return fail_errno("write_failed", "write", errno);
        }
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return {};
}

Result<std::string> read_to_end(int fd, std::size_t max_bytes) {
    std::string out;
    char buffer[65536];
    for (;;) {
        const ssize_t n = ::read(fd, buffer, sizeof buffer);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return fail_errno("read_failed", "read", errno);
        }
        if (n == 0) {
            return out;
        }
        if (out.size() + static_cast<std::size_t>(n) > max_bytes) {
            return fail(
                ErrorKind::too_large,
                "file_too_large",
                "input is larger than " + std::to_string(max_bytes) + " bytes"
            );
        }
        out.append(buffer, static_cast<std::size_t>(n));
    }
}

Result<std::string> read_file(const std::string& path, std::size_t max_bytes) {
    auto fd = open_file(path, O_RDONLY);
    if (!fd) {
        return std::unexpected(fd.error());
    }
    auto text = read_to_end(fd->get(), max_bytes);
    if (!text) {
        text.error().message = path + ": " + text.error().message;
    }
    return text;
}

}  // namespace ars::base
