// One scope that is up: its init, its control socket, and the commands running in it.
#pragma once

#include "base/task_group.hpp"
#include "sandbox/child_io.hpp"
#include "sandbox/egress_proxy.hpp"
#include "sandbox/launcher.hpp"
#include "sandbox/live_process.hpp"
#include "sandbox/protocol.hpp"
#include "sandbox/scope.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ars::sandbox {

class LiveScope final : public Scope,
                        public ProcessOwner,
                        public std::enable_shared_from_this<LiveScope> {
  public:
    // `log` must outlive the scope.
    LiveScope(
        boost::asio::any_io_executor executor,
        std::shared_ptr<ChildIo> io,
        std::shared_ptr<SandboxCounters> counters,
        const base::Log& log,
        LaunchedScope launched,
        std::uint64_t generation
    );
    // Starts listening to the init; once, after construction.
    void listen();
    // Gives its commands the network of `proxy`; once, before the first command.
    void serve_proxy(std::unique_ptr<EgressProxy> proxy);

    [[nodiscard]] std::uint64_t generation() const override { return generation_; }
    [[nodiscard]] bool alive() const override { return alive_ && !closing_; }
    base::Task<Outcome> run(Command command) override;
    base::Task<base::Result<std::shared_ptr<Process>>> start(Command command) override;
    [[nodiscard]] std::shared_ptr<Process> find(const std::string& id) const override;
    [[nodiscard]] std::vector<std::shared_ptr<Process>> processes() const override;
    base::Task<std::vector<BackgroundProcess>> background() override;
    base::Task<void> close() override;
    base::Task<void> end(std::shared_ptr<LiveProcess> process) override;

    // For idle release: commands that are not over. What they left running does not count.
    [[nodiscard]] std::size_t running() const { return running_; }
    [[nodiscard]] std::chrono::steady_clock::time_point last_used() const { return last_used_; }
    void touch() { last_used_ = std::chrono::steady_clock::now(); }
    [[nodiscard]] bool fresh_proc() const { return launched_.fresh_proc; }

  private:
    using ProcessPtr = std::shared_ptr<LiveProcess>;

    [[nodiscard]] base::Result<ProcessPtr> admit(const Command& command, bool known_by_id);
    base::Task<void> serve(ProcessPtr process, Command command);
    base::Task<base::Result<void>> begin(ProcessPtr process, Command* command);
    base::Task<base::Result<void>> send(Message message, std::string text, std::vector<int> fds);
    base::Task<void> tell(Tag tag, std::uint64_t number, int value);
    base::Task<void> list_background(ProcessPtr process);
    base::Task<std::string> kill_tree(ProcessPtr process);
    base::Task<void> end_init();
    void remember(const ProcessPtr& process);
    void forget_oldest();
    void on_violation(const Message& message);
    void on_ended(LiveProcess& process, const Message& message);
    bool count_oom_kills();
    void on_report(std::string_view bytes);
    void on_closed();

    boost::asio::any_io_executor executor_;
    std::shared_ptr<ChildIo> io_;
    std::shared_ptr<SandboxCounters> counters_;
    const base::Log& log_;
    LaunchedScope launched_;
    std::unique_ptr<ChildStream> control_stream_;
    std::unique_ptr<EgressProxy> proxy_;  // of a policy with allowed_hosts
    std::uint64_t generation_;
    bool alive_ = true;
    bool closing_ = false;
    base::Notifier closed_;
    std::uint64_t oom_kills_ = 0;  // by the kernel in our cgroup, as far as they are counted
    std::uint64_t last_number_ = 0;
    std::uint64_t last_id_ = 0;
    std::size_t running_ = 0;
    std::chrono::steady_clock::time_point last_used_ = std::chrono::steady_clock::now();
    std::map<std::uint64_t, ProcessPtr> commands_;  // by number, until nothing is left
    std::map<std::uint64_t, ProcessPtr> started_;   // by number, while running or remembered
    base::TaskGroup supervisors_;                   // of the started ones
};

}  // namespace ars::sandbox
