#include "sandbox/live_scope.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"

#include <cerrno>
#include <cstring>

#include <sys/wait.h>

namespace ars::sandbox {

namespace {

namespace limits = base::limits;

constexpr auto kSendRetry = std::chrono::milliseconds(2);
constexpr auto kSendLimit =
    std::chrono::seconds(1);  // an init that reads nothing for so long is gone
constexpr auto kListLimit = std::chrono::milliseconds(500);

}  // namespace

LiveScope::Running::Running(const boost::asio::any_io_executor& executor, const Command& command)
    : output(command.capture_bytes, command.log, command.log_guest_path),
      on_output(command.on_output),
      changed(executor) {}

void LiveScope::Running::keep_in_background() {
    // Its pipes stay open and are emptied: a server left running must not die of its first log
    // line.
    discarding = true;
    on_output = nullptr;
    output = OutputCapture(0, nullptr, {});
}

LiveScope::LiveScope(
    boost::asio::any_io_executor executor,
    std::shared_ptr<ChildIo> io,
    const base::Log& log,
    LaunchedScope launched,
    std::uint64_t generation
)
    : executor_(std::move(executor)),
      io_(std::move(io)),
      log_(log),
      network_(std::move(launched.network)),
      init_(std::move(launched.init)),
      control_fd_(std::move(launched.control)),
      generation_(generation),
      fresh_proc_(launched.fresh_proc),
      closed_(executor_) {}

void LiveScope::listen() {
    auto reading = base::duplicate(control_fd_.get());
    if (!reading) {
        on_closed();
        return;
    }
    // The stream belongs to this scope and is stopped with it.
    auto on_bytes = [this](std::string_view bytes) { on_report(bytes); };
    auto on_end = [this](int) { on_closed(); };
    control_stream_ = io_->read(std::move(*reading), on_bytes, on_end);
}

void LiveScope::on_report(std::string_view bytes) {
    Message message;
    if (bytes.size() < sizeof message) {
        return;
    }
    std::memcpy(&message, bytes.data(), sizeof message);
    bytes.remove_prefix(sizeof message);
    const auto found = commands_.find(message.id);
    if (found == commands_.end()) {
        return;
    }
    const RunningPtr running = found->second;
    switch (message.tag) {
        case Tag::exec_failed:
            running->exec_errno = message.value;
            running->exec_step = std::string(bytes);
            running->ended = running->empty = true;
            running->finished = std::chrono::steady_clock::now();
            break;
        case Tag::ended:
            running->status = message.value;
            running->ended = true;
            running->empty = message.flag != 0;
            running->finished = std::chrono::steady_clock::now();
            break;
        case Tag::emptied:
            running->empty = true;
            break;
        case Tag::processes:
            running->listed = true;
            while (!bytes.empty()) {
                const std::string_view entry = bytes.substr(0, bytes.find('\0'));
                bytes.remove_prefix(std::min(entry.size() + 1, bytes.size()));
                const std::size_t space = std::min(entry.find(' '), entry.size());
                running->processes.push_back(
                    {std::atoi(std::string(entry.substr(0, space)).c_str()),
                     base::to_utf8(entry.substr(std::min(space + 1, entry.size()))).text}
                );
            }
            break;
        default:
            return;
    }
    if (running->empty) {
        commands_.erase(message.id);
    }
    running->changed.notify_all();
}

void LiveScope::on_closed() {
    if (!alive_) {
        return;
    }
    alive_ = false;
    if (!closing_) {
        log_.warning("scope_died", {{"generation", generation_}, {"pid", init_.pid()}});
    }
    for (auto& [id, running] : commands_) {
        running->scope_died = true;
        running->ended = running->empty = true;
        running->finished = std::chrono::steady_clock::now();
        running->changed.notify_all();
    }
    commands_.clear();
}

base::Task<base::Result<void>> LiveScope::send(
    Message message, std::string text, std::vector<int> fds
) {
    const auto deadline = base::Deadline::after(kSendLimit);
    for (;;) {
        const int error = send_message(control_fd_.get(), message, text, fds);
        if (error == 0) {
            co_return base::Result<void>{};
        }
        if (error != EAGAIN || deadline.passed()) {
            co_return base::fail_errno("scope_gone", "send to the scope's init", error);
        }
        co_await base::sleep_until(base::Deadline::after(kSendRetry));
    }
}

base::Task<void> LiveScope::tell(Tag tag, std::uint64_t id, int value) {
    Message message;
    message.tag = tag;
    message.id = id;
    message.value = value;
    // A failure means that the init is gone, which the control stream reports too.
    (void)co_await send(message, {}, {});
}

void LiveScope::read_stream(const RunningPtr& running, base::Fd fd, int stream) {
    // The streams are owned by what their callbacks point to.
    Running* const target = running.get();
    auto on_bytes = [target, stream](std::string_view bytes) {
        if (target->discarding) {
            return;
        }
        target->output.append(stream, bytes);
        if (target->on_output) {
            target->on_output(stream, bytes);
        }
    };
    auto on_end = [target](int) {
        --target->open_streams;
        target->changed.notify_all();
    };
    running->streams.push_back(io_->read(std::move(fd), std::move(on_bytes), std::move(on_end)));
}

base::Task<base::Result<void>> LiveScope::start(RunningPtr running, const Command& command) {
    auto out = base::make_pipe();
    auto err = base::make_pipe();
    base::Result<base::Pipe> in;
    if (command.stdin_data) {
        in = base::make_pipe();
    }
    for (const auto* pipe : {&out, &err, &in}) {
        if (!*pipe) {
            co_return std::unexpected(pipe->error());
        }
    }
    StartText start;
    start.cwd = command.cwd;
    start.argv = command.argv;
    for (const auto& [name, value] : command.environment) {
        start.environment.push_back(name + "=" + value);
    }
    std::string text = encode_start(start);
    std::vector<int> fds{out->write.get(), err->write.get()};
    if (command.stdin_data) {
        fds.push_back(in->read.get());
    }
    Message message;
    message.tag = Tag::start;
    message.id = running->id;
    const auto payload = pack_payload(message, text, fds);
    if (!payload) {
        co_return std::unexpected(payload.error());
    }
    if (auto sent = co_await send(message, std::move(text), std::move(fds)); !sent) {
        co_return sent;
    }
    commands_.emplace(running->id, running);
    read_stream(running, std::move(out->read), 1);
    read_stream(running, std::move(err->read), 2);
    if (command.stdin_data) {
        // A command that does not read to the end is not a failure.
        running->streams.push_back(io_->write(std::move(in->write), *command.stdin_data, [](int) {})
        );
    }
    co_return base::Result<void>{};
}

base::Task<bool> LiveScope::run_to_end(RunningPtr running, base::milliseconds timeout) {
    const auto deadline = base::Deadline::after(timeout);
    while (!running->ended) {
        if (!co_await running->changed.wait(deadline) && !running->ended) {
            co_return false;
        }
    }
    co_await drain(running);
    if (!running->empty && alive()) {
        co_await list_background(running);
    }
    co_return true;
}

// A command is over when its process ends, not when its pipes close: what is in them by then, and
// what comes within a short grace, still belongs to it.
base::Task<void> LiveScope::drain(RunningPtr running) {
    const auto grace = base::Deadline::after(limits::kDrainGrace);
    while (!running->closed()) {
        if (!co_await running->changed.wait(grace)) {
            break;
        }
    }
}

base::Task<void> LiveScope::list_background(RunningPtr running) {
    co_await tell(Tag::list, running->id, 0);
    const auto deadline = base::Deadline::after(kListLimit);
    while (!running->listed && !running->empty) {
        if (!co_await running->changed.wait(deadline)) {
            break;
        }
    }
}

// TERM, grace, KILL, proof. Returns what is worth saying about it.
base::Task<std::string> LiveScope::kill_tree(RunningPtr running) {
    co_await tell(Tag::signal_tree, running->id, SIGTERM);
    const auto grace = base::Deadline::after(limits::kTermGrace);
    while (!running->empty && co_await running->changed.wait(grace)) {
    }
    if (!running->empty) {
        co_await tell(Tag::kill_tree, running->id, 0);
        const auto proof = base::Deadline::after(limits::kKillProof);
        while (!running->empty && co_await running->changed.wait(proof)) {
        }
    }
    std::string note;
    if (!running->empty) {
        note = "its processes did not end, so the whole sandbox was killed";
        co_await close();
    }
    co_await drain(running);
    co_return note;
}

Outcome LiveScope::outcome_of(Running& running) const {
    Outcome outcome;
    running.output.finish(outcome);
    outcome.duration =
        std::chrono::duration_cast<base::milliseconds>(running.finished - running.started);
    if (running.scope_died) {
        outcome.status = OutcomeStatus::signalled;
        outcome.signal = SIGKILL;
        outcome.detail = "the sandbox ended while the command ran";
    } else if (!running.exec_step.empty()) {
        outcome.status = OutcomeStatus::setup_failed;
        outcome.detail = running.exec_step + ": " + std::strerror(running.exec_errno);
        if (running.exec_step == "exec") {
            outcome.setup_errno = running.exec_errno;
        } else if (running.exec_step == "fork" && running.exec_errno == EAGAIN) {
            outcome.detail += ": the sandbox's process limit is reached; end background processes";
        }
    } else if (WIFSIGNALED(running.status)) {
        outcome.status = OutcomeStatus::signalled;
        outcome.signal = WTERMSIG(running.status);
    } else {
        outcome.status = OutcomeStatus::exited;
        outcome.exit_code = WEXITSTATUS(running.status);
    }
    if (!running.empty) {
        outcome.background = running.processes;
    }
    return outcome;
}

base::Task<Outcome> LiveScope::run(Command command) {
    const auto self = shared_from_this();  // release() may drop the last other reference meanwhile
    Outcome outcome;
    if (!alive() || command.argv.empty() || commands_.size() >= limits::kCommandsPerScope) {
        outcome.detail = !alive()               ? "the sandbox is gone"
                         : command.argv.empty() ? "the command is empty"
                                                : "too many commands run in this sandbox";
        co_return outcome;
    }
    auto running = std::make_shared<Running>(executor_, command);
    running->id = ++last_id_;
    struct InUse {
        LiveScope& scope;
        explicit InUse(LiveScope& used) : scope(used) { ++scope.running_; }
        InUse(const InUse&) = delete;
        InUse& operator=(const InUse&) = delete;
        ~InUse() {
            --scope.running_;
            scope.touch();
        }
    } in_use(*this);
    if (auto started = co_await start(running, command); !started) {
        outcome.detail = started.error().message;
        co_return outcome;
    }
    bool in_time = false;
    bool cancelled = false;
    try {
        in_time = co_await run_to_end(running, command.timeout);
    } catch (const boost::system::system_error&) {
        cancelled = true;
    }
    std::string note;
    if (!in_time) {
        // Nobody leaves before the tree is gone.
        co_await base::shield_from_cancellation();
        note = co_await kill_tree(running);
    }
    if (running->empty) {
        running->streams.clear();
    }
    if (cancelled) {
        throw boost::system::system_error(boost::asio::error::operation_aborted);
    }
    const bool failed_meanwhile = running->scope_died && note.empty();
    outcome = outcome_of(*running);
    if (!in_time && !failed_meanwhile) {
        outcome.status = OutcomeStatus::timed_out;
        outcome.detail = note;
        outcome.duration = std::chrono::duration_cast<base::milliseconds>(
            std::chrono::steady_clock::now() - running->started
        );
    }
    if (!running->empty) {
        running->keep_in_background();
    }
    co_return outcome;
}

base::Task<void> LiveScope::close() {
    const auto self = shared_from_this();
    if (std::exchange(closing_, true)) {
        while (init_.running()) {
            if (!co_await closed_.wait(base::Deadline::after(limits::kKillProof))) {
                break;
            }
        }
        co_return;
    }
    co_await base::shield_from_cancellation();
    init_.kill();
    // The kernel lets a pid namespace's init end only after every other process in it is gone.
    if (!co_await init_.wait_end(base::Deadline::after(limits::kKillProof))) {
        log_.error("scope_not_ended", {{"generation", generation_}, {"pid", init_.pid()}});
    }
    network_.reset();
    on_closed();
    control_stream_.reset();
    control_fd_.reset();
    closed_.notify_all();
}

}  // namespace ars::sandbox
