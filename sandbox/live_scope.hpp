// One scope that is up: its init, its control socket, and the commands running in it.
#pragma once

#include "sandbox/child_io.hpp"
#include "sandbox/launcher.hpp"
#include "sandbox/output_capture.hpp"
#include "sandbox/protocol.hpp"
#include "sandbox/scope.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ars::sandbox {

class LiveScope final : public Scope, public std::enable_shared_from_this<LiveScope> {
  public:
    // `log` must outlive the scope.
    LiveScope(
        boost::asio::any_io_executor executor,
        std::shared_ptr<ChildIo> io,
        const base::Log& log,
        LaunchedScope launched,
        std::uint64_t generation
    );
    // Starts listening to the init; once, after construction.
    void listen();

    [[nodiscard]] std::uint64_t generation() const override { return generation_; }
    [[nodiscard]] bool alive() const override { return alive_ && !closing_; }
    base::Task<Outcome> run(Command command) override;
    base::Task<void> close() override;

    // For idle release.
    [[nodiscard]] std::size_t running() const { return running_; }
    [[nodiscard]] std::chrono::steady_clock::time_point last_used() const { return last_used_; }
    void touch() { last_used_ = std::chrono::steady_clock::now(); }
    [[nodiscard]] bool fresh_proc() const { return fresh_proc_; }

  private:
    // What is known of one command. Held by run() and by the map that the init's reports are looked
    // up in.
    struct Running {
        Running(const boost::asio::any_io_executor& executor, const Command& command);
        [[nodiscard]] bool closed() const { return open_streams == 0; }
        void keep_in_background();

        std::uint64_t id = 0;
        OutputCapture output;
        std::function<void(int stream, std::string_view bytes)> on_output;
        bool discarding = false;  // the command is over, something it started is not
        int open_streams = 2;
        bool ended = false;
        bool empty = false;  // nothing of its tree is left
        bool scope_died = false;
        int status = 0;
        int exec_errno = 0;
        std::string exec_step;  // set when it was never executed
        bool listed = false;
        std::vector<BackgroundProcess> processes;
        base::Notifier changed;
        std::vector<std::unique_ptr<ChildStream>> streams;
        std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
        std::chrono::steady_clock::time_point finished = started;
    };
    using RunningPtr = std::shared_ptr<Running>;

    base::Task<base::Result<void>> start(RunningPtr running, const Command& command);
    base::Task<base::Result<void>> send(Message message, std::string text, std::vector<int> fds);
    base::Task<void> tell(Tag tag, std::uint64_t id, int value);
    base::Task<bool> run_to_end(RunningPtr running, base::milliseconds timeout);
    base::Task<void> drain(RunningPtr running);
    base::Task<void> list_background(RunningPtr running);
    base::Task<std::string> kill_tree(RunningPtr running);
    void read_stream(const RunningPtr& running, base::Fd fd, int stream);
    void on_report(std::string_view bytes);
    void on_closed();
    [[nodiscard]] Outcome outcome_of(Running& running) const;

    boost::asio::any_io_executor executor_;
    std::shared_ptr<ChildIo> io_;
    const base::Log& log_;
    std::unique_ptr<NetworkLease> network_;  // given up once `init_` has ended
    ChildProcess init_;
    std::unique_ptr<ChildStream> control_stream_;
    base::Fd control_fd_;
    std::uint64_t generation_;
    bool fresh_proc_;
    bool alive_ = true;
    bool closing_ = false;
    base::Notifier closed_;
    std::uint64_t last_id_ = 0;
    std::size_t running_ = 0;
    std::chrono::steady_clock::time_point last_used_ = std::chrono::steady_clock::now();
    std::map<std::uint64_t, RunningPtr> commands_;  // until nothing of their trees is left
};

}  // namespace ars::sandbox
