// The child-I/O backend on an io_uring ring of our own, with one eventfd into Asio. Every buffer
// belongs to its operation and lives until the kernel gave it back, whatever happened to the stream
// meanwhile.
#include "sandbox/child_io.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <liburing.h>

#include <cerrno>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/utsname.h>

namespace ars::sandbox {

namespace {

namespace asio = boost::asio;

constexpr unsigned kEntries = 256;
constexpr std::size_t kIdleBuffers = 16;
constexpr int kExitRounds = 50;  // of one millisecond, until the kernel gave all buffers back

struct Operation {
    base::Fd fd;
    bool writing = false;
    std::unique_ptr<char[]> buffer;  // reads; of kReadBytes, touched only as far as it is filled
    std::string outgoing;            // writes
    std::size_t written = 0;
    OnBytes on_bytes;
    OnEnd on_end;
    bool stopped = false;
    bool paused = false;
    bool parked = false;   // paused with no read under way
    bool waiting = false;  // for a descriptor that someone made non-blocking to be ready
};

class Ring : public std::enable_shared_from_this<Ring> {
  public:
    explicit Ring(asio::any_io_executor executor) : executor_(executor), event_(executor) {}
    Ring(const Ring&) = delete;
    Ring& operator=(const Ring&) = delete;
    ~Ring() {
        if (ready_) {
            give_back();
            ::io_uring_queue_exit(&ring_);
        }
    }

    base::Result<void> open() {
        if (const int error = ::io_uring_queue_init(kEntries, &ring_, IORING_SETUP_CLAMP);
            error < 0) {
            return base::fail_errno("io_uring_unavailable", "io_uring_queue_init", -error);
        }
        ready_ = true;
        base::Fd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
        if (!event) {
            return base::fail_errno("io_uring_unavailable", "eventfd", errno);
        }
        if (const int error = ::io_uring_register_eventfd(&ring_, event.get()); error < 0) {
            return base::fail_errno("io_uring_unavailable", "io_uring_register_eventfd", -error);
        }
        event_.assign(event.release());
        return {};
    }

    std::uint64_t start(Operation operation) {
        const std::uint64_t id = ++last_id_;
        if (!operation.writing) {
            operation.buffer = take_buffer();
        }
        operations_.emplace(id, std::move(operation));
        submit(id);
        return id;
    }

    void stop(std::uint64_t id) {
        const auto found = operations_.find(id);
        if (found == operations_.end() || found->second.stopped) {
            return;
        }
        found->second.stopped = true;
        found->second.on_bytes = nullptr;
        found->second.on_end = nullptr;
        if (found->second.parked) {
            erase(id);
        } else {
            cancel(id);
        }
    }

    void pause(std::uint64_t id) {
        if (const auto found = operations_.find(id); found != operations_.end()) {
            found->second.paused = true;
        }
    }

    void resume(std::uint64_t id) {
        const auto found = operations_.find(id);
        if (found == operations_.end()) {
            return;
        }
        found->second.paused = false;
        if (std::exchange(found->second.parked, false)) {
            submit(id);
        }
    }

  private:
    io_uring_sqe* next_entry() {
        io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);
        if (entry == nullptr) {
            ::io_uring_submit(&ring_);
            entry = ::io_uring_get_sqe(&ring_);
        }
        return entry;
    }

    void submit(std::uint64_t id) {
        Operation& operation = operations_.at(id);
        io_uring_sqe* const entry = next_entry();
        if (entry == nullptr) {
            finish(id, EBUSY);
            return;
        }
        if (operation.waiting) {
            ::io_uring_prep_poll_add(
                entry, operation.fd.get(), operation.writing ? POLLOUT : POLLIN
            );
            ::io_uring_sqe_set_data64(entry, id);
            flush_soon();
            return;
        }
        constexpr auto kNoOffset = static_cast<std::uint64_t>(-1);
        if (operation.writing) {
            const std::string_view rest =
                std::string_view(operation.outgoing).substr(operation.written);
            const auto size = static_cast<unsigned>(rest.size());
            ::io_uring_prep_write(entry, operation.fd.get(), rest.data(), size, kNoOffset);
        } else {
            ::io_uring_prep_read(
                entry, operation.fd.get(), operation.buffer.get(), kReadBytes, kNoOffset
            );
        }
        ::io_uring_sqe_set_data64(entry, id);
        flush_soon();
    }

    void cancel(std::uint64_t id) {
        if (io_uring_sqe* const entry = next_entry()) {
            ::io_uring_prep_cancel64(entry, id, 0);
            ::io_uring_sqe_set_data64(entry, 0);
            flush_soon();
        }
    }

    // One system call for all that this turn of the executor wants.
    void flush_soon() {
        if (std::exchange(flush_posted_, true)) {
            return;
        }
        auto self = shared_from_this();
        asio::post(executor_, [self] { self->flush(); });
    }

    void flush() {
        flush_posted_ = false;
        ::io_uring_submit(&ring_);
        listen();
    }

    // Only while something is under way, so that an idle ring does not keep the executor running.
    void listen() {
        if (listening_ || operations_.empty()) {
            return;
        }
        listening_ = true;
        auto self = shared_from_this();
        event_.async_read_some(
            asio::buffer(&count_, sizeof count_),
            [self](const boost::system::error_code& error, std::size_t) {
                self->listening_ = false;
                if (!error) {
                    self->complete();
                    self->listen();
                }
            }
        );
    }

    void complete() {
        io_uring_cqe* entry = nullptr;
        while (::io_uring_peek_cqe(&ring_, &entry) == 0) {
            const std::uint64_t id = ::io_uring_cqe_get_data64(entry);
            const int result = entry->res;
            ::io_uring_cqe_seen(&ring_, entry);
            if (id != 0) {
                on_result(id, result);
            }
        }
    }

    void on_result(std::uint64_t id, int result) {
        const auto found = operations_.find(id);
        if (found == operations_.end()) {
            return;
        }
        Operation& operation = found->second;
        if (operation.stopped) {
            erase(id);
        } else if (std::exchange(operation.waiting, result == -EAGAIN) || result == -EAGAIN ||
                   result == -EINTR) {
            submit(id);
        } else if (result < 0) {
            finish(id, -result);
        } else if (operation.writing) {
            operation.written += static_cast<std::size_t>(result);
            operation.written == operation.outgoing.size() ? finish(id, 0) : submit(id);
        } else if (result == 0) {
            finish(id, 0);
        } else {
            // References into the map stay valid while the callback starts other operations; it may
            // also stop this one, so its function is kept alive here.
            const OnBytes callback = operation.on_bytes;
            callback(std::string_view(operation.buffer.get(), static_cast<std::size_t>(result)));
            if (operation.stopped) {
                erase(id);
            } else if (operation.paused) {
                operation.parked = true;
            } else {
                submit(id);
            }
        }
    }

    void finish(std::uint64_t id, int error) {
        auto node = operations_.extract(id);
        if (node.empty()) {
            return;
        }
        Operation operation = std::move(node.mapped());
        keep_buffer(std::move(operation.buffer));
        operation.fd.reset();
        if (operation.on_end) {
            operation.on_end(error);
        }
    }

    void erase(std::uint64_t id) {
        auto node = operations_.extract(id);
        keep_buffer(std::move(node.mapped().buffer));
    }

    // The heap would grow and shrink with each command.
    std::unique_ptr<char[]> take_buffer() {
        if (idle_buffers_.empty()) {
            return std::make_unique_for_overwrite<char[]>(kReadBytes);
        }
        auto buffer = std::move(idle_buffers_.back());
        idle_buffers_.pop_back();
        return buffer;
    }
    void keep_buffer(std::unique_ptr<char[]> buffer) {
        if (buffer && idle_buffers_.size() < kIdleBuffers) {
            idle_buffers_.push_back(std::move(buffer));
        }
    }

    void give_back() {
        for (auto& [id, operation] : operations_) {
            operation.stopped = true;
            if (io_uring_sqe* const entry = next_entry()) {
                ::io_uring_prep_cancel64(entry, id, 0);
                ::io_uring_sqe_set_data64(entry, 0);
            }
        }
        ::io_uring_submit(&ring_);
        for (int round = 0; round < kExitRounds && !operations_.empty(); ++round) {
            io_uring_cqe* entry = nullptr;
            __kernel_timespec pause{0, 1'000'000};
            ::io_uring_wait_cqe_timeout(&ring_, &entry, &pause);
            complete();
        }
    }

    asio::any_io_executor executor_;
    io_uring ring_{};
    bool ready_ = false;
    asio::posix::stream_descriptor event_;
    std::uint64_t count_ = 0;
    bool listening_ = false;
    bool flush_posted_ = false;
    std::uint64_t last_id_ = 0;
    std::unordered_map<std::uint64_t, Operation> operations_;
    std::vector<std::unique_ptr<char[]>> idle_buffers_;
};

class UringStream final : public ChildStream {
  public:
    UringStream(std::shared_ptr<Ring> ring, std::uint64_t id) : ring_(std::move(ring)), id_(id) {}
    UringStream(const UringStream&) = delete;
    UringStream& operator=(const UringStream&) = delete;
    ~UringStream() override { ring_->stop(id_); }
    void pause() override { ring_->pause(id_); }
    void resume() override { ring_->resume(id_); }

  private:
    std::shared_ptr<Ring> ring_;
    std::uint64_t id_;
};

class UringIo final : public ChildIo {
  public:
    explicit UringIo(std::shared_ptr<Ring> ring) : ring_(std::move(ring)) {}

    [[nodiscard]] std::string name() const override { return "io_uring"; }

    std::unique_ptr<ChildStream> read(base::Fd fd, OnBytes on_bytes, OnEnd on_end) override {
        Operation operation;
        operation.fd = std::move(fd);
        operation.on_bytes = std::move(on_bytes);
        operation.on_end = std::move(on_end);
        return std::make_unique<UringStream>(ring_, ring_->start(std::move(operation)));
    }

    std::unique_ptr<ChildStream> write(base::Fd fd, std::string bytes, OnEnd on_end) override {
        Operation operation;
        operation.fd = std::move(fd);
        operation.writing = true;
        operation.outgoing = std::move(bytes);
        operation.on_end = std::move(on_end);
        return std::make_unique<UringStream>(ring_, ring_->start(std::move(operation)));
    }

  private:
    std::shared_ptr<Ring> ring_;
};

}  // namespace

base::Result<std::unique_ptr<ChildIo>> make_uring_io(asio::any_io_executor executor) {
    auto ring = std::make_shared<Ring>(std::move(executor));
    if (auto opened = ring->open(); !opened) {
        return std::unexpected(opened.error());
    }
    return std::make_unique<UringIo>(std::move(ring));
}

int try_io_uring() {
    io_uring ring{};
    if (const int error = ::io_uring_queue_init(2, &ring, 0); error < 0) {
        return -error;
    }
    int result = 0;
    if (io_uring_sqe* const entry = ::io_uring_get_sqe(&ring)) {
        ::io_uring_prep_nop(entry);
    }
    io_uring_cqe* done = nullptr;
    __kernel_timespec second{1, 0};
    if (const int sent = ::io_uring_submit(&ring); sent < 0) {
        result = -sent;
    } else if (const int waited = ::io_uring_wait_cqe_timeout(&ring, &done, &second); waited < 0) {
        result = -waited;
    } else {
        ::io_uring_cqe_seen(&ring, done);
    }
    ::io_uring_queue_exit(&ring);
    return result;
}

}  // namespace ars::sandbox
