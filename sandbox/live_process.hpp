// One command's life as the server sees it: its pipes or terminal, what it wrote, what its init
// reported. LiveScope starts and ends it; here is what is known of it meanwhile and afterwards.
#pragma once

#include "base/async.hpp"
#include "sandbox/child_io.hpp"
#include "sandbox/output_capture.hpp"
#include "sandbox/process.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ars::sandbox {

class LiveProcess;

// What speaks for a kill for memory.
struct MemoryEvidence {
    std::string evidence;  // "watch" or "cgroup"; empty: it was not killed for memory
    std::uint64_t command_bytes = 0;
    std::uint64_t scope_bytes = 0;
    std::uint64_t limit_bytes = 0;
};

// What a process needs of its scope: the way to be ended.
class ProcessOwner {
  public:
    ProcessOwner() = default;
    ProcessOwner(const ProcessOwner&) = delete;
    ProcessOwner& operator=(const ProcessOwner&) = delete;
    virtual ~ProcessOwner() = default;
    virtual base::Task<void> end(std::shared_ptr<LiveProcess> process) = 0;
};

class LiveProcess final : public Process, public std::enable_shared_from_this<LiveProcess> {
  public:
    // `number` is what the init calls it; `id` is empty for a command that nobody asks for again.
    LiveProcess(
        const boost::asio::any_io_executor& executor,
        std::shared_ptr<ChildIo> io,
        std::weak_ptr<ProcessOwner> owner,
        std::uint64_t number,
        std::string id,
        const Command& command
    );

    [[nodiscard]] const std::string& id() const override { return id_; }
    [[nodiscard]] const std::string& command() const override { return command_; }
    [[nodiscard]] bool running() const override { return !over_; }
    base::Task<bool> wait(base::Deadline deadline) override;
    [[nodiscard]] Outcome outcome() const override;
    [[nodiscard]] OutputPage read(std::uint64_t offset, std::size_t max_bytes) const override;
    base::Task<base::Result<void>> write(std::string bytes, base::Deadline deadline) override;
    void close_input() override;
    base::Result<void> resize(TerminalSize size) override;
    void resume_output() override;
    base::Task<void> kill() override;

    // --- how it is started: the other ends of its pipes go to the init, then it reads its own ---
    struct ChildEnds {
        base::Fd out;  // with a terminal: the socket that the master comes back through
        base::Fd err;
        base::Fd in;
    };
    [[nodiscard]] base::Result<ChildEnds> open_ends(const Command& command);
    // Nothing comes when the init could not make one, which it reports.
    base::Task<void> receive_terminal();
    void begin_io(std::string stdin_data, bool stdin_open);

    // --- what the init reports ------------------------------------------------------------------
    void on_exec_failed(int error, std::string_view step);
    void on_ended(int status, bool empty, std::uint64_t cpu_ms);
    void on_emptied();
    void on_listed(std::string_view entries);  // (pid ' ' command '\0')*
    void on_scope_died();
    // A system call that was denied, at most once each; evidence of a kill for memory.
    void on_denied(std::string_view call);
    void on_denied_host(std::string_view host);
    void on_out_of_memory(MemoryEvidence evidence);

    // --- what its scope asks --------------------------------------------------------------------
    [[nodiscard]] std::uint64_t number() const { return number_; }
    [[nodiscard]] base::Deadline time_limit() const { return time_limit_; }
    [[nodiscard]] bool empty() const { return empty_; }
    [[nodiscard]] bool out_of_memory() const { return !memory_.evidence.empty(); }
    [[nodiscard]] bool kill_requested() const { return kill_requested_; }
    void request_kill() { kill_requested_ = true; }
    [[nodiscard]] bool wants_terminal() const { return has_terminal_; }
    [[nodiscard]] const std::vector<BackgroundProcess>& background() const { return background_; }
    void forget_background();
    [[nodiscard]] std::size_t kept_bytes() const;
    base::Task<void> wait_begun();  // bounded by the scope's own deadlines
    base::Task<bool> wait_ended(base::Deadline deadline);
    base::Task<bool> wait_empty(base::Deadline deadline);
    base::Task<bool> wait_listed(base::Deadline deadline);
    // A command is over when its process ends, not when its pipes close: what is in them by then,
    // and what comes within a short grace, still belongs to it.
    base::Task<void> drain();
    enum class Verdict : std::uint8_t { ended, timed_out, killed };
    // Fixes the outcome and lets go of what only a running command needs. `explain` may add to it.
    void conclude(Verdict verdict, std::string note, const std::function<void(Outcome&)>& explain);
    void conclude_unstarted(std::string why);
    [[nodiscard]] Outcome take_outcome() { return std::move(outcome_); }

  private:
    void read_stream(base::Fd fd, int stream);
    void send_input(std::string bytes);
    void on_input_written(int error);
    void end_input();
    void describe_end(Outcome& outcome) const;
    [[nodiscard]] std::string limit_note() const;
    [[nodiscard]] base::milliseconds elapsed() const;

    std::shared_ptr<ChildIo> io_;
    std::weak_ptr<ProcessOwner> owner_;
    std::uint64_t number_;
    std::string id_;
    std::string command_;
    ResourceLimits limits_;
    bool raw_;
    base::Deadline time_limit_;
    OutputCapture output_;
    std::function<bool(int stream, std::string_view bytes)> on_output_;
    base::Notifier changed_;

    base::Fd out_;
    base::Fd err_;
    base::Fd input_;
    base::Fd terminal_;  // the master, or before it came the socket that it comes through
    bool has_terminal_;
    std::vector<std::unique_ptr<ChildStream>> streams_;
    int open_streams_ = 0;
    bool paused_ = false;
    bool discarding_ = false;  // the command is over, something it started is not
    std::unique_ptr<ChildStream> input_stream_;
    bool writing_ = false;
    bool end_of_input_ = false;  // to come after what is being written
    bool in_mid_line_ = false;   // of what was written

    bool begun_ = false;
    bool ended_ = false;
    bool empty_ = false;  // nothing of its tree is left
    bool listed_ = false;
    bool scope_died_ = false;
    bool kill_requested_ = false;
    bool over_ = false;
    int status_ = 0;
    std::uint64_t cpu_ms_ = 0;
    int exec_errno_ = 0;
    std::string exec_step_;  // set when it was never executed
    MemoryEvidence memory_;
    std::vector<std::string> denied_;
    std::vector<std::string> denied_hosts_;
    std::vector<BackgroundProcess> background_;
    std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
    std::chrono::steady_clock::time_point finished_ = started_;
    Outcome outcome_;
};

}  // namespace ars::sandbox
