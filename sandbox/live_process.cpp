#include "sandbox/live_process.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "sandbox/protocol.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <sys/socket.h>
#include <sys/wait.h>

namespace ars::sandbox {

namespace {

namespace limits = base::limits;

constexpr std::size_t kShownCommandBytes = 200;
constexpr std::size_t kDeniedNames = 32;  // of calls, and of hosts, in one outcome
constexpr auto kTerminalLimit = std::chrono::seconds(1);

// Shell text is shown as the shell got it.
std::string shown(const std::vector<std::string>& argv) {
    std::string text;
    if (argv.size() == 3 && argv[1] == "-c") {
        text = argv[2];
    } else {
        for (const std::string& argument : argv) {
            text += (text.empty() ? "" : " ") + argument;
        }
    }
    return base::to_utf8(base::utf8_head(text, kShownCommandBytes)).text;
}

void note(std::vector<std::string>& names, std::string_view name) {
    if (names.size() < kDeniedNames && std::ranges::find(names, name) == names.end()) {
        names.emplace_back(name);
    }
}

}  // namespace

LiveProcess::LiveProcess(
    const boost::asio::any_io_executor& executor,
    std::shared_ptr<ChildIo> io,
    std::weak_ptr<ProcessOwner> owner,
    std::uint64_t number,
    std::string id,
    const Command& command
)
    : io_(std::move(io)),
      owner_(std::move(owner)),
      number_(number),
      id_(std::move(id)),
      command_(id_.empty() ? std::string() : shown(command.argv)),
      limits_(command.limits),
      raw_(command.raw),
      time_limit_(base::Deadline::after(command.timeout)),
      output_(
          command.capture_bytes,
          id_.empty() ? 0 : limits::kPolledOutputBytes,
          command.log,
          command.log_guest_path
      ),
      on_output_(command.on_output),
      changed_(executor),
      has_terminal_(command.terminal.has_value()) {}

// --- starting -----------------------------------------------------------------------------------

base::Result<LiveProcess::ChildEnds> LiveProcess::open_ends(const Command& command) {
    ChildEnds ends;
    if (has_terminal_) {
        std::array<int, 2> pair{-1, -1};
        if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair.data()) !=
            0) {
            return base::fail_errno("terminal_failed", "socketpair", errno);
        }
        terminal_ = base::Fd(pair[0]);
        ends.out = base::Fd(pair[1]);
        return ends;
    }
    auto out = base::make_pipe();
    auto err = base::make_pipe();
    if (!out || !err) {
        return std::unexpected(out ? err.error() : out.error());
    }
    out_ = std::move(out->read);
    ends.out = std::move(out->write);
    err_ = std::move(err->read);
    ends.err = std::move(err->write);
    if (command.stdin_data || command.stdin_open) {
        auto in = base::make_pipe();
        if (!in) {
            return std::unexpected(in.error());
        }
        ends.in = std::move(in->read);
        input_ = std::move(in->write);
    }
    return ends;
}

base::Task<void> LiveProcess::receive_terminal() {
    // Shared with the timer's handler, which may already be queued when the wait ends.
    auto socket = std::make_shared<boost::asio::posix::stream_descriptor>(
        changed_.executor(), terminal_.release()
    );
    boost::asio::steady_timer limit(changed_.executor(), kTerminalLimit);
    auto on_limit = [socket](const boost::system::error_code& error) {
        if (!error) {
            boost::system::error_code ignored;
            socket->cancel(ignored);
        }
    };
    limit.async_wait(on_limit);
    const auto [failed] = co_await socket->async_wait(
        boost::asio::posix::stream_descriptor::wait_read,
        boost::asio::as_tuple(boost::asio::use_awaitable)
    );
    limit.cancel();
    if (failed) {
        co_return;
    }
    auto received = receive_message(socket->native_handle());
    if (!received || received->fds.empty()) {
        co_return;
    }
    auto reading = base::duplicate(received->fds.front().get());
    auto writing = base::duplicate(received->fds.front().get());
    if (reading && writing) {
        terminal_ = std::move(received->fds.front());
        out_ = std::move(*reading);
        input_ = std::move(*writing);
    }
}

void LiveProcess::begin_io(std::string stdin_data, bool stdin_open) {
    begun_ = true;
    changed_.notify_all();
    if (out_) {
        read_stream(std::move(out_), 1);
    }
    if (err_) {
        read_stream(std::move(err_), 2);
    }
    if (!input_) {
        return;
    }
    if (!has_terminal_ && !stdin_open) {
        // The plain case. A command that does not read to the end is not a failure.
        input_stream_ = io_->write(std::move(input_), std::move(stdin_data), [](int) {});
        return;
    }
    end_of_input_ = !stdin_open && !stdin_data.empty();
    if (!stdin_data.empty()) {
        send_input(std::move(stdin_data));
    }
}

void LiveProcess::read_stream(base::Fd fd, int stream) {
    // The streams are owned by what their callbacks point to.
    auto on_bytes = [this, stream](std::string_view bytes) {
        if (discarding_) {
            return;
        }
        output_.append(stream, bytes);
        if (on_output_ && !on_output_(stream, bytes)) {
            paused_ = true;
            for (const auto& each : streams_) {
                each->pause();
            }
        }
    };
    auto on_end = [this](int) {  // EIO is how a terminal ends
        --open_streams_;
        changed_.notify_all();
    };
    ++open_streams_;
    streams_.push_back(io_->read(std::move(fd), std::move(on_bytes), std::move(on_end)));
}

void LiveProcess::resume_output() {
    paused_ = false;
    for (const auto& each : streams_) {
        each->resume();
    }
    changed_.notify_all();
}

// --- reports of the init ------------------------------------------------------------------------

void LiveProcess::on_exec_failed(int error, std::string_view step) {
    exec_errno_ = error;
    exec_step_ = std::string(step);
    ended_ = empty_ = true;
    finished_ = std::chrono::steady_clock::now();
    changed_.notify_all();
}

void LiveProcess::on_ended(int status, bool empty, std::uint64_t cpu_ms) {
    status_ = status;
    cpu_ms_ = cpu_ms;
    ended_ = true;
    empty_ = empty;
    finished_ = std::chrono::steady_clock::now();
    changed_.notify_all();
}

void LiveProcess::on_emptied() {
    empty_ = true;
    background_.clear();
    outcome_.background.clear();
    changed_.notify_all();
}

void LiveProcess::on_listed(std::string_view entries) {
    listed_ = true;
    background_.clear();
    while (!entries.empty()) {
        const std::string_view entry = entries.substr(0, entries.find('\0'));
        entries.remove_prefix(std::min(entry.size() + 1, entries.size()));
        const std::size_t space = std::min(entry.find(' '), entry.size());
        background_.push_back(
            {std::atoi(std::string(entry.substr(0, space)).c_str()),
             base::to_utf8(entry.substr(std::min(space + 1, entry.size()))).text}
        );
    }
    changed_.notify_all();
}

void LiveProcess::on_scope_died() {
    scope_died_ = !ended_;
    ended_ = empty_ = true;
    background_.clear();
    if (scope_died_) {
        finished_ = std::chrono::steady_clock::now();
    }
    changed_.notify_all();
}

void LiveProcess::on_denied(std::string_view call) { note(denied_, call); }
void LiveProcess::on_denied_host(std::string_view host) { note(denied_hosts_, host); }

void LiveProcess::on_out_of_memory(MemoryEvidence evidence) { memory_ = std::move(evidence); }

// --- waiting ------------------------------------------------------------------------------------

base::Task<bool> LiveProcess::wait(base::Deadline deadline) {
    const auto self = shared_from_this();
    while (!over_) {
        if (!co_await changed_.wait(deadline) && !over_) {
            co_return false;
        }
    }
    co_return true;
}

base::Task<void> LiveProcess::wait_begun() {
    while (!begun_ && !over_) {
        co_await changed_.wait(base::Deadline::never());
    }
}

base::Task<bool> LiveProcess::wait_ended(base::Deadline deadline) {
    while (!ended_) {
        if (!co_await changed_.wait(deadline) && !ended_) {
            co_return false;
        }
    }
    co_return true;
}

base::Task<bool> LiveProcess::wait_empty(base::Deadline deadline) {
    while (!empty_) {
        if (!co_await changed_.wait(deadline) && !empty_) {
            co_return false;
        }
    }
    co_return true;
}

base::Task<bool> LiveProcess::wait_listed(base::Deadline deadline) {
    while (!listed_ && !empty_) {
        if (!co_await changed_.wait(deadline)) {
            co_return false;
        }
    }
    co_return true;
}

base::Task<void> LiveProcess::drain() {
    auto grace = base::Deadline::after(limits::kDrainGrace);
    while (open_streams_ > 0) {
        // Whoever takes the live output may be slow: until the time limit it is waited for.
        const bool held = paused_ && !time_limit_.passed();
        if (!co_await changed_.wait(held ? time_limit_ : grace) && !held) {
            break;
        }
        if (held) {
            grace = base::Deadline::after(limits::kDrainGrace);
        }
    }
}

// --- its end ------------------------------------------------------------------------------------

base::Task<void> LiveProcess::kill() {
    const auto self = shared_from_this();
    if (const auto owner = owner_.lock()) {
        co_await owner->end(self);
    }
}

void LiveProcess::forget_background() {
    listed_ = false;
    background_.clear();
}

std::size_t LiveProcess::kept_bytes() const {
    return output_.window().size() + outcome_.out.size() + outcome_.err.size() +
           outcome_.merged.size() + outcome_.raw_out.size() + outcome_.raw_err.size();
}

base::milliseconds LiveProcess::elapsed() const {
    return std::chrono::duration_cast<base::milliseconds>(
        std::chrono::steady_clock::now() - started_
    );
}

Outcome LiveProcess::outcome() const {
    if (over_) {
        return outcome_;
    }
    Outcome so_far;
    so_far.id = id_;
    so_far.raw = raw_;
    output_.describe(so_far);
    so_far.duration = elapsed();
    return so_far;
}

OutputPage LiveProcess::read(std::uint64_t offset, std::size_t max_bytes) const {
    return output_.window().read(offset, max_bytes);
}

// Which limit ended it. A shell reports the signal of its last command as 128 + n.
std::string LiveProcess::limit_note() const {
    int signal = 0;
    if (WIFSIGNALED(status_)) {
        signal = WTERMSIG(status_);
    } else if (WIFEXITED(status_) && WEXITSTATUS(status_) > 128) {
        signal = WEXITSTATUS(status_) - 128;
    }
    const bool used_up = limits_.cpu_seconds != 0 && cpu_ms_ >= limits_.cpu_seconds * 1000;
    if (signal == SIGXCPU || (signal == SIGKILL && used_up)) {
        return "cpu time limit" + (limits_.cpu_seconds == 0
                                       ? std::string()
                                       : " of " + std::to_string(limits_.cpu_seconds) + " s");
    }
    if (signal == SIGXFSZ) {
        return "file size limit" + (limits_.file_size == 0
                                        ? std::string()
                                        : " of " + std::to_string(limits_.file_size) + " bytes");
    }
    return {};
}

// By itself: nobody of ours ended it.
void LiveProcess::describe_end(Outcome& outcome) const {
    if (out_of_memory()) {
        outcome.status = OutcomeStatus::oom;
        outcome.detail = memory_.evidence;
        outcome.peak_bytes = memory_.command_bytes;
        outcome.scope_bytes = memory_.scope_bytes;
        outcome.limit_bytes = memory_.limit_bytes;
    } else if (scope_died_) {
        outcome.status = OutcomeStatus::signalled;
        outcome.signal = SIGKILL;
        outcome.detail = "the sandbox ended while the command ran";
    } else if (!exec_step_.empty()) {
        outcome.status = OutcomeStatus::setup_failed;
        outcome.detail = exec_step_ + ": " + std::strerror(exec_errno_);
        if (exec_step_ == "exec") {
            outcome.setup_errno = exec_errno_;
        } else if (exec_step_ == "terminal" && exec_errno_ == EACCES) {
            outcome.detail +=
                ": /dev/ptmx is closed to gem; run without a terminal, or mount the "
                "container's devpts with ptmxmode=0666";
        }
    } else if (WIFSIGNALED(status_)) {
        outcome.status = OutcomeStatus::signalled;
        outcome.signal = WTERMSIG(status_);
        outcome.detail = limit_note();
    } else {
        outcome.status = OutcomeStatus::exited;
        outcome.exit_code = WEXITSTATUS(status_);
        outcome.detail = limit_note();
    }
    outcome.denied = denied_;
    outcome.name_violation();
}

void LiveProcess::conclude(
    Verdict verdict, std::string note, const std::function<void(Outcome&)>& explain
) {
    outcome_.id = id_;
    outcome_.raw = raw_;
    output_.end();
    output_.describe(outcome_);
    outcome_.duration = std::chrono::duration_cast<base::milliseconds>(finished_ - started_);
    if (verdict == Verdict::ended || (scope_died_ && note.empty())) {
        describe_end(outcome_);
    } else {
        outcome_.status =
            verdict == Verdict::timed_out ? OutcomeStatus::timed_out : OutcomeStatus::cancelled;
        outcome_.detail = std::move(note);
        outcome_.denied = denied_;
        outcome_.duration = elapsed();
    }
    outcome_.denied_hosts = denied_hosts_;
    outcome_.background = background_;
    explain(outcome_);
    input_stream_.reset();
    writing_ = false;
    input_.reset();
    on_output_ = nullptr;
    if (empty_) {
        streams_.clear();
        terminal_.reset();
    } else {
        // Its pipes stay open and are emptied: a server left running must not die of its first log
        // line.
        discarding_ = true;
        resume_output();
    }
    output_.forget();
    over_ = true;
    changed_.notify_all();
}

void LiveProcess::conclude_unstarted(std::string why) {
    outcome_.id = id_;
    outcome_.detail = std::move(why);
    for (base::Fd* fd : {&out_, &err_, &input_, &terminal_}) {
        fd->reset();
    }
    ended_ = empty_ = over_ = true;
    changed_.notify_all();
}

}  // namespace ars::sandbox
