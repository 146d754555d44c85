#include "sandbox/init_loop.hpp"

#include "base/limits.hpp"
#include "sandbox/denied_calls.hpp"
#include "sandbox/freezer.hpp"
#include "sandbox/keeper.hpp"
#include "sandbox/memory_watch.hpp"
#include "sandbox/process_tree.hpp"
#include "sandbox/protocol.hpp"
#include "sandbox/terminal.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <list>
#include <string>

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ars::sandbox {

namespace {

constexpr int kSweepMs = 5;          // between two sweeps over a tree that is being killed
constexpr std::size_t kCrowd = 64;   // a tree that keeps us waiting if it is stopped one by one
constexpr int kFreezeRounds = 8;     // STOP until nothing new appears, at most this often
constexpr int kRefusalsAtOnce = 16;  // a flood of refused calls must not keep us from other work

// Of two limits, 0 being none.
std::uint64_t stricter(std::uint64_t one, std::uint64_t other) {
    return one == 0 || (other != 0 && other < one) ? other : one;
}

class InitLoop {
  public:
    InitLoop(base::Fd proc, base::Fd denied_calls, const InitSpec& spec, base::Fd supervisor)
        : proc_(std::move(proc)),
          supervisor_(std::move(supervisor)),
          denied_calls_(std::move(denied_calls)),
          memory_(spec.memory),
          cpu_seconds_(spec.cpu_seconds),
          open_files_(spec.open_files) {}

    [[noreturn]] void run();

  private:
    [[noreturn]] void end();
    void receive();
    void start(Received received);
    void reap();
    void signal_tree(std::uint64_t id, int signal);
    void kill_tree(std::uint64_t id);
    void sweep(KeeperSlot& slot);
    void sweep_orphans();
    void list(std::uint64_t id);
    void refuse_calls();
    void watch_memory();
    [[nodiscard]] int patience_ms() const;
    void report(
        Tag tag, std::uint64_t id, int value, std::uint32_t flag, std::string_view text = {}
    );
    KeeperSlot* find(std::uint64_t id);
    [[nodiscard]] bool sweeping() const;

    base::Fd proc_;
    base::Fd supervisor_;
    base::Fd signals_;
    StackPool stacks_;
    DeniedCalls denied_calls_;
    MemoryWatch memory_;
    std::uint64_t cpu_seconds_;
    std::uint64_t open_files_;
    Freezer freezer_;
    std::list<KeeperSlot> slots_;
};

void InitLoop::report(
    Tag tag, std::uint64_t id, int value, std::uint32_t flag, std::string_view text
) {
    Message message;
    message.tag = tag;
    message.id = id;
    message.value = value;
    message.flag = flag;
    pollfd writable{kControlFd, POLLOUT, 0};
    while (send_message(kControlFd, message, text, {}) == EAGAIN) {
        ::poll(&writable, 1, 100);
    }
}

KeeperSlot* InitLoop::find(std::uint64_t id) {
    for (KeeperSlot& slot : slots_) {
        if (slot.id == id) {
            return &slot;
        }
    }
    return nullptr;
}

bool InitLoop::sweeping() const {
    for (const KeeperSlot& slot : slots_) {
        if (slot.killing || slot.lost) {
            return true;
        }
    }
    return false;
}

void InitLoop::run() {
    sigset_t chld;
    ::sigemptyset(&chld);
    ::sigaddset(&chld, SIGCHLD);
    ::sigprocmask(SIG_SETMASK, &chld, nullptr);
    signals_ = base::Fd(::signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_) {
        ::_exit(1);
    }
    for (;;) {
        // poll passes over a listener or a supervisor that is not there (-1).
        std::array<pollfd, 4> watched{
            {{kControlFd, POLLIN, 0},
             {signals_.get(), POLLIN, 0},
             {denied_calls_.fd(), POLLIN, 0},
             {supervisor_.get(), POLLIN, 0}}
        };
        const int ready = ::poll(watched.data(), watched.size(), patience_ms());
        if (ready < 0 && errno != EINTR) {
            ::_exit(1);
        }
        freezer_.begin();
        if (watched[3].revents != 0) {
            end();
        }
        if (watched[1].revents != 0) {
            signalfd_siginfo info;
            while (::read(signals_.get(), &info, sizeof info) > 0) {
            }
            reap();
        }
        if (watched[0].revents != 0) {
            receive();
        }
        if (watched[2].revents != 0) {
            refuse_calls();
        }
        watch_memory();  // before the sweeps: what it condemns should not run on meanwhile
        for (KeeperSlot& slot : slots_) {
            if (slot.killing) {
                sweep(slot);
            }
        }
        sweep_orphans();
        freezer_.thaw();
    }
}

// How long poll may wait; -1 for ever.
int InitLoop::patience_ms() const { return sweeping() ? kSweepMs : memory_.wait_ms(slots_); }

void InitLoop::watch_memory() {
    const auto now = std::chrono::steady_clock::now();
    for (const KeeperSlot& slot : slots_) {
        if (slot.kill_deadline && now > *slot.kill_deadline) {
            ::_exit(1);  // and with it everything: what does not end must not grow
        }
    }
    // While one is killed the figures say nothing about the others.
    if (sweeping() || memory_.wait_ms(slots_) != 0) {
        return;
    }
    if (const auto excess = memory_.look(slots_, proc_.get(), freezer_)) {
        KeeperSlot& largest = *excess->largest;
        report(Tag::oom, largest.id, static_cast<int>(excess->command_kib), excess->scope_kib);
        largest.kill_deadline = now + base::limits::kKillProof;
        kill_tree(largest.id);
    }
}

void InitLoop::end() {
    if (supervisor_) {
        ::kill(-1, SIGKILL);  // the Landlock domain makes this the scope's processes
    }
    ::_exit(0);
}

void InitLoop::receive() {
    auto received = receive_message(kControlFd);
    if (!received) {
        end();  // the server is gone
    }
    switch (received->message.tag) {
        case Tag::start:
            start(std::move(*received));
            break;
        case Tag::signal_tree:
            signal_tree(received->message.id, received->message.value);
            break;
        case Tag::kill_tree:
            kill_tree(received->message.id);
            break;
        case Tag::list:
            list(received->message.id);
            break;
        default:
            break;
    }
}

void InitLoop::start(Received received) {
    const std::uint64_t id = received.message.id;
    auto text = decode_start(received.text);
    const bool terminal = text && text->rows != 0;
    if (!text || received.fds.size() < (terminal ? 1U : 2U)) {
        // Descriptors got lost: a tool may have lowered the limits of this process. With it goes
        // the scope, and the next command finds a new one.
        report(Tag::exec_failed, id, EINVAL, 1, "decode");
        ::_exit(1);
    }
    if (terminal) {
        // From here on it is the stdin, stdout and stderr, as if the server had sent them.
        auto opened = open_terminal({text->rows, text->columns}, received.fds[0].get());
        if (!opened) {
            report(Tag::exec_failed, id, opened.error().sys_errno, 1, "terminal");
            return;
        }
        received.fds[0] = std::move(*opened);
    }
    KeeperSlot& slot = slots_.emplace_back(stacks_);
    slot.id = id;
    slot.text = std::move(*text);
    slot.text.limits.cpu_seconds = stricter(slot.text.limits.cpu_seconds, cpu_seconds_);
    slot.text.limits.open_files = stricter(slot.text.limits.open_files, open_files_);
    slot.terminal = terminal;
    slot.out = received.fds[0].get();
    slot.err = received.fds[terminal ? 0 : 1].get();
    if (terminal) {
        slot.in = slot.out;
    } else if (received.fds.size() > 2) {
        slot.in = received.fds[2].get();
    }
    const long keeper = prepare_slot(slot) ? start_keeper(slot) : -ENOMEM;
    if (keeper < 0) {
        report(Tag::exec_failed, id, static_cast<int>(-keeper), 1, "fork");
        slots_.pop_back();
        return;
    }
    slot.keeper = static_cast<pid_t>(keeper);
    memory_.command_started();
    // The keeper has a descriptor table of its own. `received` now closes ours, so that only the
    // command holds its pipes.
}

void InitLoop::reap() {
    for (;;) {
        int status = 0;
        const pid_t pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED | __WALL);
        if (pid <= 0) {
            return;
        }
        for (auto slot = slots_.begin(); slot != slots_.end(); ++slot) {
            if (slot->keeper != pid || slot->lost) {
                continue;
            }
            if (WIFSTOPPED(status)) {
                ::kill(pid, SIGCONT);  // a tool stopped it, and with it the news of its command
            } else if (WIFEXITED(status)) {
                slots_.erase(slot);
            } else {
                slot->lost = true;
            }
            break;
        }
    }
}

void InitLoop::signal_tree(std::uint64_t id, int signal) {
    KeeperSlot* slot = find(id);
    if (slot == nullptr) {
        return;
    }
    const std::vector<TreeProcess> tree = ProcessTree(proc_.get(), freezer_).below(slot->keeper);
    for (const TreeProcess& process : tree) {
        ::kill(process.pid, signal);
        ::kill(process.pid, SIGCONT);
    }
    // Its keeper has not come to start it yet: nothing could take the signal, or needs a grace.
    slot->killing = slot->killing || (tree.empty() && !slot->reported_end);
}

void InitLoop::kill_tree(std::uint64_t id) {
    if (KeeperSlot* slot = find(id)) {
        slot->killing = true;
        // A stopped keeper could not report.
        ::kill(slot->keeper, SIGCONT);
    }
}

void InitLoop::sweep(KeeperSlot& slot) {
    // Stopped processes can't fork, so the set stops growing and one KILL over it is the end.
    std::size_t known = 0;
    std::vector<TreeProcess> tree;
    for (int round = 0; round < kFreezeRounds; ++round) {
        tree = ProcessTree(proc_.get(), freezer_).below(slot.keeper);
        if (tree.size() > kCrowd) {
            freezer_.freeze();
        }
        for (const TreeProcess& process : tree) {
            ::kill(process.pid, SIGSTOP);
        }
        if (tree.size() == known) {
            break;
        }
        known = tree.size();
    }
    for (const TreeProcess& process : tree) {
        ::kill(process.pid, SIGKILL);
    }
}

// When a tool kills its keeper, the rest of that command comes to pid 1: everything there that is
// not a keeper is killed, and the command is reported in the keeper's place.
void InitLoop::sweep_orphans() {
    bool lost = false;
    for (const KeeperSlot& slot : slots_) {
        lost = lost || slot.lost;
    }
    if (!lost) {
        return;
    }
    bool orphans = false;
    for (const TreeProcess& child : ProcessTree(proc_.get(), freezer_).children_of_init()) {
        bool is_keeper = false;
        for (const KeeperSlot& slot : slots_) {
            is_keeper = is_keeper || (slot.keeper == child.pid && !slot.lost);
        }
        if (!is_keeper) {
            orphans = true;
            ::kill(child.pid, SIGKILL);
        }
    }
    if (orphans) {
        return;  // looked at again after the next sweep pause
    }
    for (auto slot = slots_.begin(); slot != slots_.end();) {
        const auto current = slot++;
        if (current->lost) {
            if (!current->reported_end) {
                report(Tag::ended, current->id, SIGKILL, 0);
            }
            report(Tag::emptied, current->id, 0, 1);
            slots_.erase(current);
        }
    }
}

void InitLoop::list(std::uint64_t id) {
    std::string text;
    if (const KeeperSlot* slot = find(id)) {
        std::size_t count = 0;
        for (const TreeProcess& process : ProcessTree(proc_.get(), freezer_).below(slot->keeper)) {
            if (process.zombie || ++count > kListedProcesses) {
                continue;
            }
            text += std::to_string(process.pid) + " " +
                    command_line(proc_.get(), process.proc_id, kListedCommandBytes);
            text += '\0';
        }
    }
    report(Tag::processes, id, 0, 0, text);
}

void InitLoop::refuse_calls() {
    for (int i = 0; i < kRefusalsAtOnce; ++i) {
        const auto waiting = denied_calls_.next();
        if (!waiting) {
            return;
        }
        KeeperSlot* const slot = DeniedCalls::command_of(waiting->thread, slots_, proc_.get());
        // Before the answer, so that the server hears of it before the command's end.
        if (denied_calls_.first_time(slot, waiting->call)) {
            report(
                Tag::violation,
                slot == nullptr ? 0 : slot->id,
                waiting->call.number,
                waiting->call.argument
            );
        }
        denied_calls_.refuse(*waiting);
    }
}

}  // namespace

void run_init_loop(
    base::Fd proc, base::Fd denied_calls, const InitSpec& spec, base::Fd supervisor
) {
    InitLoop(std::move(proc), std::move(denied_calls), spec, std::move(supervisor)).run();
}

}  // namespace ars::sandbox
