// The child-I/O backend that works everywhere: Asio's descriptors.
#include "sandbox/child_io.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/write.hpp>

#include <utility>
#include <vector>

namespace ars::sandbox {

namespace {

namespace asio = boost::asio;

// Shared with the pending operation, which may complete after the stream is gone.
struct Work : std::enable_shared_from_this<Work> {
    Work(const asio::any_io_executor& executor, base::Fd fd) : descriptor(executor, fd.release()) {}

    asio::posix::stream_descriptor descriptor;
    std::unique_ptr<char[]> buffer;  // of kReadBytes, touched only as far as it is filled
    std::string outgoing;
    OnBytes on_bytes;
    OnEnd on_end;
    bool stopped = false;
    bool paused = false;
    bool parked = false;  // paused with no read under way

    void read_next() {
        auto self = shared_from_this();
        descriptor.async_read_some(
            asio::buffer(buffer.get(), kReadBytes),
            [self](const boost::system::error_code& error, std::size_t n) {
                self->on_read(error, n);
            }
        );
    }

    void on_read(const boost::system::error_code& error, std::size_t n) {
        if (stopped) {
            return;
        }
        if (!error && n > 0) {
            on_bytes(std::string_view(buffer.get(), n));
            parked = paused;
            if (!stopped && !parked) {
                read_next();
            }
            return;
        }
        end(error == asio::error::eof ? 0 : error.value());
    }

    void write_all() {
        auto self = shared_from_this();
        asio::async_write(
            descriptor,
            asio::buffer(outgoing),
            [self](const boost::system::error_code& error, std::size_t) {
                if (!self->stopped) {
                    self->end(error.value());
                }
            }
        );
    }

    void end(int error) {
        stopped = true;
        boost::system::error_code ignored;
        descriptor.close(ignored);
        const OnEnd callback = std::move(on_end);
        if (callback) {
            callback(error);
        }
    }

    void resume() {
        paused = false;
        if (std::exchange(parked, false) && !stopped) {
            read_next();
        }
    }

    void stop() {
        stopped = true;
        boost::system::error_code ignored;
        descriptor.close(ignored);
    }
};

class EpollStream final : public ChildStream {
  public:
    explicit EpollStream(std::shared_ptr<Work> work) : work_(std::move(work)) {}
    EpollStream(const EpollStream&) = delete;
    EpollStream& operator=(const EpollStream&) = delete;
    ~EpollStream() override { work_->stop(); }
    void pause() override { work_->paused = true; }
    void resume() override { work_->resume(); }

  private:
    std::shared_ptr<Work> work_;
};

class EpollIo final : public ChildIo {
  public:
    explicit EpollIo(asio::any_io_executor executor) : executor_(std::move(executor)) {}

    [[nodiscard]] std::string name() const override { return "epoll"; }

    std::unique_ptr<ChildStream> read(base::Fd fd, OnBytes on_bytes, OnEnd on_end) override {
        auto work = std::make_shared<Work>(executor_, std::move(fd));
        work->buffer = std::make_unique_for_overwrite<char[]>(kReadBytes);
        work->on_bytes = std::move(on_bytes);
        work->on_end = std::move(on_end);
        work->read_next();
        return std::make_unique<EpollStream>(std::move(work));
    }

    std::unique_ptr<ChildStream> write(base::Fd fd, std::string bytes, OnEnd on_end) override {
        auto work = std::make_shared<Work>(executor_, std::move(fd));
        work->outgoing = std::move(bytes);
        work->on_end = std::move(on_end);
        work->write_all();
        return std::make_unique<EpollStream>(std::move(work));
    }

  private:
    asio::any_io_executor executor_;
};

}  // namespace

std::unique_ptr<ChildIo> make_epoll_io(asio::any_io_executor executor) {
    return std::make_unique<EpollIo>(std::move(executor));
}

}  // namespace ars::sandbox
