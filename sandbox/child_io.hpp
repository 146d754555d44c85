// The seam between the server and the pipes of its children, with two backends: an io_uring ring of
// our own, and Asio's epoll for hosts that refuse io_uring (the default container profiles do).
// Used on the executor only.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"
#include "sandbox/scope.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace ars::sandbox {

// An ongoing read or write. Destroying it stops it: no callback comes afterwards, the descriptor is
// closed.
class ChildStream {
  public:
    virtual ~ChildStream() = default;
    // Reads: no new one is begun (one under way may still bring bytes) until resume().
    virtual void pause() = 0;
    virtual void resume() = 0;
};

// `bytes` is valid during the call only. For a seqpacket socket each call is one message.
using OnBytes = std::function<void(std::string_view bytes)>;
// Once, at the end: errno, or 0 for end of file (reads) and all written (writes).
using OnEnd = std::function<void(int error)>;

class ChildIo {
  public:
    virtual ~ChildIo() = default;
    [[nodiscard]] virtual std::string name() const = 0;
    // Reads until the end of file. Callbacks may destroy the stream they belong to.
    [[nodiscard]] virtual std::unique_ptr<ChildStream> read(
        base::Fd fd, OnBytes on_bytes, OnEnd on_end
    ) = 0;
    // Writes everything, then closes.
    [[nodiscard]] virtual std::unique_ptr<ChildStream> write(
        base::Fd fd, std::string bytes, OnEnd on_end
    ) = 0;
};

// `automatic` tries a ring with one real operation and falls back to epoll.
[[nodiscard]] base::Result<std::unique_ptr<ChildIo>> make_child_io(
    boost::asio::any_io_executor executor, IoBackend backend
);

// Why io_uring does not work here: 0 when it does, else errno. Does a real operation.
[[nodiscard]] int try_io_uring();

[[nodiscard]] std::unique_ptr<ChildIo> make_epoll_io(boost::asio::any_io_executor executor);
[[nodiscard]] base::Result<std::unique_ptr<ChildIo>> make_uring_io(
    boost::asio::any_io_executor executor
);

inline constexpr std::size_t kReadBytes =
    64 * 1024;  // a whole pipe, and the longest message of an init

}  // namespace ars::sandbox
