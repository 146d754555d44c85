// The input side of LiveProcess: one chunk at a time, so that what waits to be read stays bounded.
#include "base/limits.hpp"
#include "sandbox/live_process.hpp"
#include "sandbox/terminal.hpp"

#include <cerrno>

namespace ars::sandbox {

namespace {

constexpr char kEndOfFile = '\x04';

std::unexpected<base::Error> input_closed() {
    return base::fail(
        base::ErrorKind::conflict,
        "input_closed",
        "the command takes no input: its stdin was closed or was not open from its start"
    );
}

}  // namespace

base::Task<base::Result<void>> LiveProcess::write(std::string bytes, base::Deadline deadline) {
    const auto self = shared_from_this();
    if (bytes.size() > base::limits::kInputBytes) {
        co_return base::fail(
            base::ErrorKind::too_large,
            "too_large",
            "at most " + std::to_string(base::limits::kInputBytes) + " bytes of input at a time"
        );
    }
    while (writing_) {
        if (!co_await changed_.wait(deadline) && writing_) {
            co_return base::fail(
                base::ErrorKind::timeout,
                "input_full",
                "the command has not read its earlier input; nothing of this was written"
            );
        }
    }
    if (!input_ || end_of_input_ || over_) {
        co_return input_closed();
    }
    if (bytes.empty()) {
        co_return base::Result<void>{};
    }
    send_input(std::move(bytes));
    while (writing_) {
        if (!co_await changed_.wait(deadline)) {
            break;  // taken: it is written when the command reads
        }
    }
    if (!input_ && !end_of_input_) {
        co_return input_closed();  // nobody reads it any more
    }
    co_return base::Result<void>{};
}

void LiveProcess::send_input(std::string bytes) {
    // ChildIo closes what it has written to, so it gets a descriptor of its own.
    auto copy = base::duplicate(input_.get());
    if (!copy) {
        on_input_written(copy.error().sys_errno);
        return;
    }
    writing_ = true;
    in_mid_line_ = bytes.back() != '\n';
    auto on_end = [this](int error) { on_input_written(error); };
    input_stream_ = io_->write(std::move(*copy), std::move(bytes), std::move(on_end));
}

void LiveProcess::on_input_written(int error) {
    writing_ = false;
    if (error != 0) {
        input_.reset();
    } else if (end_of_input_) {
        end_input();
    }
    changed_.notify_all();
}

void LiveProcess::close_input() {
    if (!input_ || std::exchange(end_of_input_, true)) {
        return;
    }
    if (!writing_) {
        end_input();
    }
}

void LiveProcess::end_input() {
    if (!has_terminal_) {
        input_.reset();
        return;
    }
    // In the middle of a line the first one only sends what there is of it.
    base::Fd last = std::move(input_);
    const std::string end(in_mid_line_ ? 2 : 1, kEndOfFile);
    input_stream_ = io_->write(std::move(last), end, [](int) {});
}

base::Result<void> LiveProcess::resize(TerminalSize size) {
    if (!has_terminal_ || !terminal_) {
        return base::fail(
            base::ErrorKind::conflict, "no_terminal", "the command runs without a terminal"
        );
    }
    return set_terminal_size(terminal_.get(), {size.rows, size.columns});
}

}  // namespace ars::sandbox
