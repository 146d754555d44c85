// Ownership of what the launcher starts: a child by pid and pidfd, a network, a scope.
#include "sandbox/launcher.hpp"
#include "sandbox/protocol.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

#include <cerrno>
#include <memory>
#include <utility>

#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ars::sandbox {

namespace asio = boost::asio;

// The system call: glibc 2.36's header forgets that its pidfd_open is a C function.
ChildProcess::ChildProcess(pid_t pid)
    : pid_(pid), pidfd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), pidfd_(std::move(other.pidfd_)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
    if (this != &other) {
        ChildProcess gone(std::move(*this));
        pid_ = std::exchange(other.pid_, 0);
        pidfd_ = std::move(other.pidfd_);
    }
    return *this;
}

ChildProcess::~ChildProcess() {
    if (running()) {
        kill();
        reap(0);
    }
}

void ChildProcess::kill() {
    if (running()) {
        // Ours and not reaped, so the number can't belong to anyone else.
        ::kill(pid_, SIGKILL);
    }
}

bool ChildProcess::reap(int options) {
    if (!running()) {
        return true;
    }
    pid_t reaped = 0;
    do {
        reaped = ::waitpid(pid_, nullptr, options | __WALL);
    } while (reaped < 0 && errno == EINTR);
    if (reaped == 0) {
        return false;
    }
    pid_ = 0;  // also when someone else reaped it (SIGCHLD ignored)
    pidfd_.reset();
    return true;
}

base::Task<bool> ChildProcess::wait_end(base::Deadline deadline) {
    if (reap(WNOHANG)) {
        co_return true;
    }
    const auto executor = co_await asio::this_coro::executor;
    auto watched = base::duplicate(pidfd_.get());
    if (!watched) {
        co_return reap(0);
    }
    // Shared with the timer's handler, which may already be queued when the wait ends.
    auto descriptor =
        std::make_shared<asio::posix::stream_descriptor>(executor, watched->release());
    asio::steady_timer timer(executor);
    timer.expires_at(deadline.at);
    auto on_deadline = [descriptor](const boost::system::error_code& error) {
        if (!error) {
            boost::system::error_code ignored;
            descriptor->cancel(ignored);
        }
    };
    timer.async_wait(on_deadline);
    // Asio may report to us what was meant for a descriptor that is closed by now: only a child
    // that was reaped has ended.
    bool ended = false;
    while (!ended) {
        const auto [error] = co_await descriptor->async_wait(
            asio::posix::stream_descriptor::wait_read, asio::as_tuple(asio::use_awaitable)
        );
        ended = reap(WNOHANG);
        if (error || deadline.passed()) {
            break;  // the deadline, or the caller was cancelled
        }
    }
    timer.cancel();
    co_return ended;
}

NetworkLease::~NetworkLease() {
    Message message;
    message.tag = Tag::network_free;
    message.id = id_;
    // A template that is gone, or too busy to read, makes a new network for its next scope.
    (void)send_message(owner_->control.get(), message, {}, {});
}

void LaunchedScope::end() {
    if (tier == Tier::landlock) {
        ::shutdown(control.get(), SHUT_RDWR);
    } else {
        init.kill();
    }
}

}  // namespace ars::sandbox
