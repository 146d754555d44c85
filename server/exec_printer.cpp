#include "server/exec_printer.hpp"

#include "base/fd.hpp"

#include <boost/asio/post.hpp>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

namespace ars::server {

namespace asio = boost::asio;

// The thread holds it too: one that is stuck in a write outlives the printer.
struct Printer::Shared : std::enable_shared_from_this<Printer::Shared> {
    explicit Shared(asio::any_io_executor on) : executor(on), progress(on) {}

    const asio::any_io_executor executor;
    std::mutex mutex;
    std::condition_variable work;
    std::deque<std::pair<int, std::string>> queue;
    std::size_t waiting = 0;  // bytes, those being written included
    bool full = false;        // somebody was told so
    bool stopping = false;
    std::thread thread;
    // On the executor only.
    base::Notifier progress;
    std::function<void()> on_room;

    void write_loop() {
        std::set<int> gone;
        std::unique_lock lock(mutex);
        for (;;) {
            work.wait(lock, [this] { return stopping || !queue.empty(); });
            if (stopping) {
                return;
            }
            const auto [fd, bytes] = std::move(queue.front());
            queue.pop_front();
            lock.unlock();
            if (!gone.contains(fd) && !base::write_all(fd, bytes)) {
                gone.insert(fd);
            }
            lock.lock();
            waiting -= bytes.size();
            const bool room = full && waiting <= kPrintQueueBytes / 2;
            if (!stopping && (room || waiting == 0)) {
                full = full && !room;
                // Under the lock: whoever sets `stopping` may take the executor away.
                asio::post(executor, [self = shared_from_this(), room] {
                    self->progress.notify_all();
                    if (room && self->on_room) {
                        self->on_room();
                    }
                });
            }
        }
    }
};

Printer::Printer(asio::any_io_executor executor)
    : shared_(std::make_shared<Shared>(std::move(executor))) {}

Printer::~Printer() {
    bool idle = false;
    {
        const std::lock_guard lock(shared_->mutex);
        shared_->stopping = true;
        idle = shared_->waiting == 0;
    }
    shared_->work.notify_all();
    shared_->on_room = nullptr;
    if (!shared_->thread.joinable()) {
        return;
    }
    if (idle) {
        shared_->thread.join();
    } else {
        shared_->thread.detach();  // in a write that nobody can call back
    }
}

bool Printer::put(int fd, std::string bytes) {
    const std::lock_guard lock(shared_->mutex);
    if (!shared_->thread.joinable()) {
        shared_->thread = std::thread([shared = shared_] { shared->write_loop(); });
    }
    shared_->waiting += bytes.size();
    shared_->queue.emplace_back(fd, std::move(bytes));
    shared_->full = shared_->full || shared_->waiting > kPrintQueueBytes;
    shared_->work.notify_one();
    return !shared_->full;
}

void Printer::on_room(std::function<void()> call) { shared_->on_room = std::move(call); }

base::Task<bool> Printer::flushed(base::Deadline deadline) {
    const auto shared = shared_;
    const auto all_written = [&shared] {
        const std::lock_guard lock(shared->mutex);
        return shared->waiting == 0;
    };
    while (!all_written()) {
        if (!co_await shared->progress.wait(deadline) && !all_written()) {
            co_return false;
        }
    }
    co_return true;
}

}  // namespace ars::server
