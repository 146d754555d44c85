#include "sandbox/live_scope.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "sandbox/environment.hpp"
#include "sandbox/failure_hint.hpp"
#include "sandbox/proxy_environment.hpp"
#include "sandbox/violation.hpp"

#include <cerrno>
#include <cstring>

#include <sys/wait.h>

namespace ars::sandbox {

namespace {

namespace limits = base::limits;

constexpr auto kSendRetry = std::chrono::milliseconds(2);
constexpr auto kSendLimit =
    std::chrono::seconds(1);                // an init that reads nothing for so long is gone
constexpr std::size_t kCallsCounted = 128;  // names of refused calls in the counters
// Until an ended scope must be gone and its private directory with it, however busy the machine.
constexpr auto kScopeProof = std::chrono::seconds(10);
constexpr auto kListLimit = std::chrono::milliseconds(500);

}  // namespace

LiveScope::LiveScope(
    boost::asio::any_io_executor executor,
    std::shared_ptr<ChildIo> io,
    std::shared_ptr<SandboxCounters> counters,
    const base::Log& log,
    LaunchedScope launched,
    std::uint64_t generation
)
    : executor_(std::move(executor)),
      io_(std::move(io)),
      counters_(std::move(counters)),
      log_(log),
      launched_(std::move(launched)),
      generation_(generation),
      closed_(executor_),
      supervisors_(executor_) {}

void LiveScope::listen() {
    auto reading = base::duplicate(launched_.control.get());
    if (!reading) {
        on_closed();
        return;
    }
    // The stream belongs to this scope and is stopped with it.
    auto on_bytes = [this](std::string_view bytes) { on_report(bytes); };
    auto on_end = [this](int) { on_closed(); };
    control_stream_ = io_->read(std::move(*reading), on_bytes, on_end);
}

void LiveScope::on_violation(const Message& message) {
    const std::string name = denied_call_name(message.value, message.flag);
    std::string call = name.substr(0, name.find('('));
    auto& counted = counters_->denied_calls;
    if (!counted.contains(call) && counted.size() + 1 >= kCallsCounted) {
        call = "other";
    }
    ++counted[call];
    // One that belongs to no command is counted only.
    if (const auto found = commands_.find(message.id); found != commands_.end()) {
        found->second->on_denied(name);
    }
}

void LiveScope::serve_proxy(std::unique_ptr<EgressProxy> proxy) {
    proxy_ = std::move(proxy);
    // Which of several commands asked can't be told: the connection says nothing of it.
    proxy_->on_denied_host([this](const std::string& host) {
        for (const auto& [number, process] : commands_) {
            process->on_denied_host(host);
        }
    });
    proxy_->start();
}

void LiveScope::on_report(std::string_view bytes) {
    Message message;
    if (bytes.size() < sizeof message) {
        return;
    }
    std::memcpy(&message, bytes.data(), sizeof message);
    bytes.remove_prefix(sizeof message);
    if (message.tag == Tag::violation) {
        on_violation(message);
        return;
    }
    const auto found = commands_.find(message.id);
    if (found == commands_.end()) {
        return;
    }
    const ProcessPtr process = found->second;
    switch (message.tag) {
        case Tag::exec_failed:
            process->on_exec_failed(message.value, bytes);
            break;
        case Tag::ended:
            on_ended(*process, message);
            break;
        case Tag::emptied:
            process->on_emptied();
            break;
        case Tag::oom:
            ++counters_->oom_kills;
            process->on_out_of_memory(
                {.evidence = "watch",
                 .command_bytes = std::uint64_t{static_cast<std::uint32_t>(message.value)} * 1024,
                 .scope_bytes = std::uint64_t{message.flag} * 1024,
                 .limit_bytes = launched_.memory_limit}
            );
            break;
        case Tag::processes:
            process->on_listed(bytes);
            break;
        default:
            break;
    }
    if (process->empty()) {
        commands_.erase(message.id);
    }
}

// The kernel kills one process and counts it; whose it was it does not say. A command that ended by
// KILL is the one, and so is any that failed while no other ran.
void LiveScope::on_ended(LiveProcess& process, const Message& message) {
    process.on_ended(message.value, message.flag != 0, message.cpu_ms);
    const int status = message.value;
    const bool killed = (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ||
                        (WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGKILL);
    if (!(killed || running_ == 1) || !count_oom_kills() || status == 0) {
        return;
    }
    const std::uint64_t limit = launched_.memory_limit;
    const std::uint64_t peak = launched_.cgroup.memory().peak_bytes;
    process.on_out_of_memory(
        {.evidence = "cgroup",
         .command_bytes = peak == 0 ? limit : peak,
         .scope_bytes = peak == 0 ? limit : peak,
         .limit_bytes = limit}
    );
}

// True when the cgroup has killed since the last time.
bool LiveScope::count_oom_kills() {
    const std::uint64_t kills = launched_.cgroup ? launched_.cgroup.memory().oom_kills : 0;
    const bool more = kills > oom_kills_;
    if (more) {
        counters_->oom_kills += kills - std::exchange(oom_kills_, kills);
    }
    return more;
}

void LiveScope::on_closed() {
    if (!alive_) {
        return;
    }
    alive_ = false;
    if (!closing_) {
        log_.warning("scope_died", {{"generation", generation_}, {"pid", launched_.init.pid()}});
    }
    for (const auto& [number, process] : std::exchange(commands_, {})) {
        process->on_scope_died();
    }
}

base::Task<base::Result<void>> LiveScope::send(
    Message message, std::string text, std::vector<int> fds
) {
    const auto deadline = base::Deadline::after(kSendLimit);
    for (;;) {
        const int error = send_message(launched_.control.get(), message, text, fds);
        if (error == 0) {
            co_return base::Result<void>{};
        }
        if (error != EAGAIN || deadline.passed()) {
            co_return base::fail_errno("scope_gone", "send to the scope's init", error);
        }
        co_await base::sleep_until(base::Deadline::after(kSendRetry));
    }
}

base::Task<void> LiveScope::tell(Tag tag, std::uint64_t number, int value) {
    Message message;
    message.tag = tag;
    message.id = number;
    message.value = value;
    // A failure means that the init is gone, which the control stream reports too.
    (void)co_await send(message, {}, {});
}

// --- one command --------------------------------------------------------------------------------

base::Result<LiveScope::ProcessPtr> LiveScope::admit(const Command& command, bool known_by_id) {
    if (!alive()) {
        return base::fail(base::ErrorKind::unavailable, "scope_gone", "the sandbox is gone");
    }
    if (command.argv.empty()) {
        return base::fail(base::ErrorKind::invalid, "bad_command", "the command is empty");
    }
    if (commands_.size() >= limits::kCommandsPerScope) {
        return base::fail(
            base::ErrorKind::exhausted, "scope_busy", "too many commands run in this sandbox"
        );
    }
    std::string id = known_by_id ? std::to_string(++last_id_) : std::string();
    return std::make_shared<LiveProcess>(
        executor_, io_, weak_from_this(), ++last_number_, std::move(id), command
    );
}

base::Task<base::Result<void>> LiveScope::begin(ProcessPtr process, Command* command) {
    auto ends = process->open_ends(*command);
    if (!ends) {
        co_return std::unexpected(ends.error());
    }
    const bool terminal = command->terminal.has_value();
    StartText start;
    start.cwd = command->cwd;
    start.argv = command->argv;
    start.limits = command->limits;
    for (const auto& [name, value] : placed(command->environment, launched_.private_tmp)) {
        const bool dumb = terminal && name == "TERM" && value == "dumb";
        start.environment.push_back(name + "=" + (dumb ? "xterm" : value));
    }
    std::vector<int> fds{ends->out.get()};
    if (terminal) {
        start.rows = command->terminal->rows;
        start.columns = command->terminal->columns;
    } else {
        fds.push_back(ends->err.get());
    }
    if (ends->in) {
        fds.push_back(ends->in.get());
    }
    if (proxy_) {
        add_proxy_environment(start.environment);
    }
    std::string text = encode_start(start);
    Message message;
    message.tag = Tag::start;
    message.id = process->number();
    const auto payload = pack_payload(message, text, fds);
    if (!payload) {
        co_return std::unexpected(payload.error());
    }
    if (auto sent = co_await send(message, std::move(text), std::move(fds)); !sent) {
        co_return sent;
    }
    commands_.emplace(process->number(), process);
    if (terminal) {
        ends->out.reset();
        co_await process->receive_terminal();
    }
    process->begin_io(std::move(command->stdin_data).value_or(std::string()), command->stdin_open);
    co_return base::Result<void>{};
}

// From its start to its outcome. When the caller is cancelled the tree is killed first.
base::Task<void> LiveScope::serve(ProcessPtr process, Command command) {
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
    bool in_time = false;
    bool cancelled = false;
    std::string note;
    try {
        if (running_ == 1) {
            (void)count_oom_kills();  // what is killed from here on may be its own
        }
        if (auto begun = co_await begin(process, &command); !begun) {
            ++counters_->commands[to_string(OutcomeStatus::setup_failed)];
            process->conclude_unstarted(begun.error().message);
            co_return;
        }
        // Whoever asked for its end before it had begun found nothing to kill.
        in_time = !process->kill_requested() && co_await process->wait_ended(process->time_limit());
        if (in_time) {
            if (process->out_of_memory() && !launched_.cgroup) {
                // The init ends the rest of it, or the scope.
                co_await process->wait_empty(base::Deadline::after(2 * limits::kKillProof));
            }
            co_await process->drain();
            if (!process->empty() && !process->kill_requested() && alive()) {
                co_await list_background(process);
            }
        }
    } catch (const boost::system::system_error&) {
        cancelled = true;
    }
    if (cancelled || !in_time) {
        // Nobody leaves before the tree is gone.
        co_await base::shield_from_cancellation();
        note = co_await kill_tree(process);
    }
    using Verdict = LiveProcess::Verdict;
    const bool killed = cancelled || process->kill_requested();
    const auto explain = [this](Outcome& outcome) {
        ++counters_->commands[to_string(outcome.status)];
        outcome.add_detail(failure_hint(
            outcome,
            {launched_.policy, launched_.process_limit, launched_.tier, launched_.private_tmp}
        ));
    };
    process->conclude(
        killed ? Verdict::killed : (in_time ? Verdict::ended : Verdict::timed_out),
        std::move(note),
        explain
    );
    if (cancelled) {
        throw boost::system::system_error(boost::asio::error::operation_aborted);
    }
}

base::Task<Outcome> LiveScope::run(Command command) {
    const auto self = shared_from_this();  // release() may drop the last other reference meanwhile
    auto process = admit(command, false);
    if (!process) {
        Outcome outcome;
        outcome.detail = process.error().message;
        co_return outcome;
    }
    co_await serve(*process, std::move(command));
    co_return (*process)->take_outcome();
}

base::Task<void> LiveScope::list_background(ProcessPtr process) {
    process->forget_background();
    co_await tell(Tag::list, process->number(), 0);
    co_await process->wait_listed(base::Deadline::after(kListLimit));
}

// TERM, grace, KILL, proof. Returns what is worth saying about it.
base::Task<std::string> LiveScope::kill_tree(ProcessPtr process) {
    if (!commands_.contains(process->number())) {
        co_return std::string();  // it never came to the init, or nothing of it is left
    }
    co_await tell(Tag::signal_tree, process->number(), SIGTERM);
    if (!co_await process->wait_empty(base::Deadline::after(limits::kTermGrace))) {
        co_await tell(Tag::kill_tree, process->number(), 0);
        co_await process->wait_empty(base::Deadline::after(limits::kKillProof));
    }
    std::string note;
    if (!process->empty()) {
        note = "its processes did not end, so the whole sandbox was killed";
        co_await end_init();
    }
    co_await process->drain();
    co_return note;
}

// --- commands that go on ------------------------------------------------------------------------

base::Task<base::Result<std::shared_ptr<Process>>> LiveScope::start(Command command) {
    const auto self = shared_from_this();
    auto process = admit(command, true);
    if (!process) {
        co_return std::unexpected(process.error());
    }
    supervisors_.spawn(serve(*process, std::move(command)));
    bool cancelled = false;
    try {
        co_await (*process)->wait_begun();
    } catch (const boost::system::system_error&) {
        cancelled = true;
    }
    if (cancelled) {
        co_await base::shield_from_cancellation();
        co_await end(*process);
        throw boost::system::system_error(boost::asio::error::operation_aborted);
    }
    remember(*process);
    co_return *process;
}

// Idempotent: whoever asks, and how many, all leave when nothing of it is alive.
base::Task<void> LiveScope::end(ProcessPtr process) {
    const auto self = shared_from_this();
    co_await base::shield_from_cancellation();
    process->request_kill();
    co_await kill_tree(process);
    co_await process->wait(base::Deadline::after(limits::kTermGrace + 2 * limits::kKillProof));
}

void LiveScope::remember(const ProcessPtr& process) {
    started_.emplace(process->number(), process);
    forget_oldest();
}

void LiveScope::forget_oldest() {
    std::size_t ended = 0;
    std::size_t bytes = 0;
    // From the newest on: what is over and beyond the bounds goes.
    for (auto it = started_.rbegin(); it != started_.rend();) {
        const LiveProcess& process = *it->second;
        if (!process.running()) {
            ++ended;
            bytes += process.kept_bytes();
        }
        if (!process.running() && (ended > limits::kRememberedCommands ||
                                   (ended > 1 && bytes > limits::kRememberedBytes))) {
            it = std::make_reverse_iterator(started_.erase(std::next(it).base()));
        } else {
            ++it;
        }
    }
}

std::shared_ptr<Process> LiveScope::find(const std::string& id) const {
    for (const auto& [number, process] : started_) {
        if (process->id() == id) {
            return process;
        }
    }
    return nullptr;
}

std::vector<std::shared_ptr<Process>> LiveScope::processes() const {
    std::vector<std::shared_ptr<Process>> all;
    for (const auto& [number, process] : started_) {
        all.push_back(process);
    }
    return all;
}

base::Task<std::vector<BackgroundProcess>> LiveScope::background() {
    const auto self = shared_from_this();
    std::vector<ProcessPtr> left;
    for (const auto& [number, process] : commands_) {
        if (!process->running()) {
            left.push_back(process);
        }
    }
    std::vector<BackgroundProcess> all;
    for (const ProcessPtr& process : left) {
        co_await list_background(process);
        all.insert(all.end(), process->background().begin(), process->background().end());
    }
    co_return all;
}

// --- the end ------------------------------------------------------------------------------------

// The init goes, and with it everything in the scope. Whoever comes second waits for the first.
base::Task<void> LiveScope::end_init() {
    if (std::exchange(closing_, true)) {
        const auto proof = base::Deadline::after(kScopeProof);
        while (launched_.init.running() && co_await closed_.wait(proof)) {
        }
        co_return;
    }
    co_await base::shield_from_cancellation();
    if (proxy_) {
        co_await proxy_->close();
    }
    launched_.end();
    if (!co_await launched_.init.wait_end(base::Deadline::after(kScopeProof))) {
        log_.error("scope_not_ended", {{"generation", generation_}, {"pid", launched_.init.pid()}});
    }
    launched_.network.reset();
    launched_.cgroup = ScopeCgroup();  // killed as a whole should the init not have ended
    on_closed();
    control_stream_.reset();
    launched_.control.reset();
    closed_.notify_all();
}

base::Task<void> LiveScope::close() {
    const auto self = shared_from_this();
    co_await base::shield_from_cancellation();
    co_await end_init();
    co_await supervisors_.join();
}

}  // namespace ars::sandbox
