#include "sandbox/keeper.hpp"

#include "sandbox/raw_syscall.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

// Sanitizers keep state per thread of libc, which keepers are not.
#define ARS_KEEPER_CODE __attribute__((no_sanitize("address", "thread", "undefined")))

namespace ars::sandbox {

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kStack = 32 * 1024;
constexpr std::size_t kChildStackTop = kPage + kStack;
constexpr std::size_t kKeeperStackTop = 2 * (kPage + kStack);
constexpr const char* kShell = "/bin/sh";

long address(const void* pointer) { return reinterpret_cast<long>(pointer); }

ARS_KEEPER_CODE void report(
    const KeeperSlot& slot, Tag tag, int value, std::uint32_t flag, std::uint64_t cpu_ms = 0
) {
    struct {
        Message message;
        char text[16];
    } packet{};
    packet.message.tag = tag;
    packet.message.value = value;
    packet.message.id = slot.id;
    packet.message.flag = flag;
    packet.message.cpu_ms = cpu_ms;
    std::size_t size = sizeof(Message);
    if (tag == Tag::exec_failed) {
        for (const char* c = slot.exec_step; *c != '\0' && size < sizeof packet; ++c) {
            packet.text[size - sizeof(Message)] = *c;
            ++size;
        }
    }
    // A server that does not read for long is dead or stopped; the message is worth waiting for.
    long sent = 0;
    do {
        sent = raw_syscall(
            SYS_sendto, kControlFd, address(&packet), static_cast<long>(size), MSG_NOSIGNAL
        );
    } while (sent == -EINTR);
}

ARS_KEEPER_CODE int fail_exec(KeeperSlot& slot, const char* step, long error) {
    slot.exec_step = step;
    slot.exec_errno = static_cast<int>(-error);
    return 127;
}

// All signals act as by default already: init_main saw to that, and nobody changes one since. Only
// the keeper's mask must go.
ARS_KEEPER_CODE void unblock_signals() {
    const unsigned long none = 0;
    raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, address(&none), 0, sizeof none);
}

ARS_KEEPER_CODE long set_limit(int resource, std::uint64_t soft, std::uint64_t hard) {
    if (soft == 0) {
        return 0;
    }
    struct {
        std::uint64_t soft;
        std::uint64_t hard;
    } limit{};
    long answer = raw_syscall(SYS_prlimit64, 0, resource, 0, address(&limit));
    if (answer == 0) {
        limit.hard = hard < limit.hard ? hard : limit.hard;
        limit.soft = soft < limit.hard ? soft : limit.hard;
        answer = raw_syscall(SYS_prlimit64, 0, resource, address(&limit), 0);
    }
    return answer;
}

ARS_KEEPER_CODE long set_limits(const ResourceLimits& limits) {
    // A second between SIGXCPU and SIGKILL.
    long answer = set_limit(RLIMIT_CPU, limits.cpu_seconds, limits.cpu_seconds + 1);
    if (answer == 0) {
        answer = set_limit(RLIMIT_FSIZE, limits.file_size, limits.file_size);
    }
    if (answer == 0) {
        answer = set_limit(RLIMIT_NOFILE, limits.open_files, limits.open_files);
    }
    if (answer == 0) {
        answer = set_limit(RLIMIT_NPROC, limits.processes, limits.processes);
    }
    return answer;
}

ARS_KEEPER_CODE long try_candidates(KeeperSlot& slot) {
    // argv[0] is kept free for the shell of a script without "#!".
    char** const argv = slot.argv.data() + 1;
    long answer = -ENOENT;
    for (std::size_t i = 0; i < slot.candidates.size(); ++i) {
        const char* const path = slot.candidates[i].c_str();
        long error =
            raw_syscall(SYS_execve, address(path), address(argv), address(slot.environment.data()));
        if (error == -ENOEXEC) {
            char* const name = argv[0];
            slot.argv[0] = const_cast<char*>(kShell);
            argv[0] = const_cast<char*>(path);
            error = raw_syscall(
                SYS_execve,
                address(kShell),
                address(slot.argv.data()),
                address(slot.environment.data())
            );
            argv[0] = name;
        }
        if (error == -EACCES || error == -EPERM) {
            answer = error;  // keep looking, as shells do, but remember
        } else if (error != -ENOENT && error != -ENOTDIR) {
            return error;
        }
    }
    return answer;
}

// Runs between vfork and exec, on its own stack, while the keeper is suspended.
ARS_KEEPER_CODE int child_main(void* argument) {
    KeeperSlot& slot = *static_cast<KeeperSlot*>(argument);
    slot.session.store(static_cast<pid_t>(raw_syscall(SYS_setsid)));
    if (slot.terminal) {
        if (const long error = raw_syscall(SYS_ioctl, slot.in, TIOCSCTTY, 0); error < 0) {
            return fail_exec(slot, "terminal", error);
        }
    }
    // The init keeps 0, 1 and 2 on /dev/null, so none of these numbers is below 4.
    if (slot.in >= 0) {
        raw_syscall(SYS_dup3, slot.in, 0, 0);
    }
    raw_syscall(SYS_dup3, slot.out, 1, 0);
    raw_syscall(SYS_dup3, slot.err, 2, 0);
    raw_syscall(SYS_close_range, 3, ~0U, 0);
    if (const long error = raw_syscall(SYS_chdir, address(slot.text.cwd.c_str())); error < 0) {
        return fail_exec(slot, "chdir", error);
    }
    if (const long error = set_limits(slot.text.limits); error < 0) {
        return fail_exec(slot, "limits", error);
    }
    unblock_signals();
    return fail_exec(slot, "exec", try_candidates(slot));
}

ARS_KEEPER_CODE std::uint64_t cpu_ms(const rusage& used) {
    const long seconds = used.ru_utime.tv_sec + used.ru_stime.tv_sec;
    const long micros = used.ru_utime.tv_usec + used.ru_stime.tv_usec;
    return static_cast<std::uint64_t>(seconds * 1000 + micros / 1000);
}

// Reaps until no child is left; returns false when there are some but none has ended (only with
// WNOHANG).
ARS_KEEPER_CODE bool reap_all(int options) {
    for (;;) {
        const long pid = raw_syscall(SYS_wait4, -1, 0, __WALL | options, 0);
        if (pid == -ECHILD) {
            return true;
        }
        if (pid == 0) {
            return false;
        }
    }
}

ARS_KEEPER_CODE int keeper_main(void* argument) {
    KeeperSlot& slot = *static_cast<KeeperSlot*>(argument);
    raw_syscall(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    // A tool that signals "everything" must not end its own keeper; only SIGKILL does.
    const unsigned long all = ~0UL;
    raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, address(&all), 0, sizeof all);
    const long child = raw_clone(
        CLONE_VM | CLONE_VFORK | SIGCHLD, slot.stacks + kChildStackTop, &child_main, &slot
    );
    raw_syscall(SYS_close_range, kControlFd + 1, ~0U, 0);
    if (child < 0) {
        fail_exec(slot, "fork", child);
    }
    if (slot.exec_errno != 0) {
        reap_all(0);
        slot.reported_end.store(true);
        report(slot, Tag::exec_failed, slot.exec_errno, 1);
        return 0;
    }
    for (;;) {
        int status = 0;
        rusage used;
        const long pid = raw_syscall(SYS_wait4, -1, address(&status), __WALL, address(&used));
        if (pid == child) {
            const bool empty = reap_all(WNOHANG);
            slot.reported_end.store(true);
            report(slot, Tag::ended, status, empty ? 1 : 0, cpu_ms(used));
            if (empty) {
                return 0;
            }
            break;
        }
    }
    reap_all(0);
    report(slot, Tag::emptied, 0, 1);
    return 0;
}

}  // namespace

StackPool::~StackPool() {
    for (char* const stacks : idle_) {
        ::munmap(stacks, kKeeperStackTop);
    }
}

char* StackPool::take() {
    if (!idle_.empty()) {
        char* const stacks = idle_.back();
        idle_.pop_back();
        return stacks;
    }
    void* const memory = ::mmap(
        nullptr,
        kKeeperStackTop,
        PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE,
        -1,
        0
    );
    if (memory == MAP_FAILED) {
        return nullptr;
    }
    char* const stacks = static_cast<char*>(memory);
    ::mprotect(stacks, kPage, PROT_NONE);
    ::mprotect(stacks + kChildStackTop, kPage, PROT_NONE);
    return stacks;
}

void StackPool::give_back(char* stacks) {
    if (idle_.size() < kKept) {
        idle_.push_back(stacks);
    } else {
        ::munmap(stacks, kKeeperStackTop);
    }
}

KeeperSlot::~KeeperSlot() {
    if (stacks != nullptr) {
        pool.give_back(stacks);
    }
}

bool prepare_slot(KeeperSlot& slot) {
    const std::string& name = slot.text.argv.front();
    std::string_view path = "/usr/local/bin:/usr/bin:/bin";
    for (std::string& variable : slot.text.environment) {
        if (variable.starts_with("PATH=")) {
            path = std::string_view(variable).substr(5);
        }
        slot.environment.push_back(variable.data());
    }
    slot.environment.push_back(nullptr);
    slot.argv.push_back(nullptr);
    for (std::string& argument : slot.text.argv) {
        slot.argv.push_back(argument.data());
    }
    slot.argv.push_back(nullptr);
    if (name.find('/') != std::string::npos) {
        slot.candidates.push_back(name);
    } else if (!name.empty()) {
        while (!path.empty()) {
            const std::size_t colon = std::min(path.find(':'), path.size());
            // An empty entry would mean the working directory, which tools may fill: not looked at.
            if (colon > 0) {
                slot.candidates.push_back(std::string(path.substr(0, colon)) + "/" + name);
            }
            path.remove_prefix(std::min(colon + 1, path.size()));
        }
    }
    slot.stacks = slot.pool.take();
    return slot.stacks != nullptr;
}

long start_keeper(KeeperSlot& slot) {
    return raw_clone(CLONE_VM | SIGCHLD, slot.stacks + kKeeperStackTop, &keeper_main, &slot);
}

}  // namespace ars::sandbox
