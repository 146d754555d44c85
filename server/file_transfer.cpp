#include "server/file_transfer.hpp"

#include "server/http_limits.hpp"

#include <cerrno>
#include <stdexcept>

#include <unistd.h>

namespace ars::server {

namespace {

// The bytes at `offset`, at most a piece; empty at the end or when the disk fails.
std::string read_piece(int fd, std::uint64_t offset, std::uint64_t most) {
    std::string out(std::min<std::uint64_t>(most, kFilePiece), '\0');
    ssize_t size = 0;
    do {
        size = ::pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    } while (size < 0 && errno == EINTR);
    out.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    return out;
}

}  // namespace

base::Task<void> FileBody::run(StreamWriter& writer) {
    const std::uint64_t size = file_->info.size;
    for (std::uint64_t offset = 0; offset < size;) {
        const auto work = [file = file_, offset, most = size - offset] {
            return read_piece(file->fd.get(), offset, most);
        };
        const std::string piece = co_await offload_.run(work);
        if (piece.empty()) {
            throw std::runtime_error("a file became shorter, or unreadable, while it was sent");
        }
        offset += piece.size();
        co_await writer.write(piece);
    }
}

base::Task<base::Result<void>> FileSink::write(std::string bytes) {
    const auto work = [file = file_, bytes = std::move(bytes)] {
        return file->write(bytes, "the content of the request");
    };
    co_return co_await offload_.run(work);
}

}  // namespace ars::server
