#include "sandbox/early_template.hpp"

#include "sandbox/protocol.hpp"
#include "sandbox/raw_syscall.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <fcntl.h>
#include <linux/memfd.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

// What runs before libc: no relocation has been done, so static data holds no pointer yet; no
// function of libc can be called; the stack's guard is not there.
#define ARS_BEFORE_LIBC \
    __attribute__((no_stack_protector, no_sanitize("address", "thread", "undefined")))

// The entry of the program, in the place of libc's, which follows.
#if defined(__x86_64__)
__asm__(
    ".globl ars_entry\n"
    ".type ars_entry, @function\n"
    "ars_entry:\n"
    "endbr64\n"
    "mov %rsp, %rdi\n"
    "push %rdx\n"  // _start takes it
    "push %rdx\n"
    "call ars_before_libc\n"
    "pop %rdx\n"
    "pop %rdx\n"
    "jmp _start\n"
);
#elif defined(__aarch64__)
__asm__(
    ".globl ars_entry\n"
    ".type ars_entry, %function\n"
    "ars_entry:\n"
    "mov x19, x0\n"  // _start takes it
    "mov x0, sp\n"
    "bl ars_before_libc\n"
    "mov x0, x19\n"
    "b _start\n"
);
#endif

extern "C" {
[[gnu::visibility("hidden")]] extern const char ars_init_program_begin[];
[[gnu::visibility("hidden")]] extern const char ars_init_program_end[];
[[gnu::visibility("hidden"), gnu::used]] void ars_before_libc(const std::uintptr_t* stack);
}

namespace ars::sandbox {

namespace {

// Not static data with a value: nothing has been relocated when it is written.
int early_pid;
int early_control;

long address(const void* pointer) { return reinterpret_cast<long>(pointer); }

// Keeps the compiler from making a list of constants static data.
ARS_BEFORE_LIBC const char* here(const char* text) {
    __asm__("" : "+r"(text));
    return text;
}

ARS_BEFORE_LIBC bool is_exec(const char* word) {
    const char exec[] = {'e', 'x', 'e', 'c', '\0'};
    for (std::size_t i = 0; i < sizeof exec; ++i) {
        if (word[i] != exec[i]) {
            return false;
        }
    }
    return true;
}

// As Launcher::program() does it, from which a later template comes.
ARS_BEFORE_LIBC long make_program() {
    constexpr unsigned kMfdExec = 0x0010U;
    constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    long file = raw_syscall(SYS_memfd_create, address(kInitName), kFlags | kMfdExec);
    if (file == -EINVAL) {
        file = raw_syscall(SYS_memfd_create, address(kInitName), kFlags);
    }
    for (const char* at = ars_init_program_begin; file >= 0 && at != ars_init_program_end;) {
        const long written = raw_syscall(SYS_write, file, address(at), ars_init_program_end - at);
        if (written <= 0) {
            return -1;
        }
        at += written;
    }
    constexpr long kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    return raw_syscall(SYS_fcntl, file, F_ADD_SEALS, kSeals) == 0 ? file : -1;
}

// As spawn_program() of the launcher does it. Signals are the init's own business.
ARS_BEFORE_LIBC void become_template(int control) {
    const long program = make_program();
    const long input = raw_syscall(SYS_openat, AT_FDCWD, address("/dev/null"), O_RDONLY);
    const long output = raw_syscall(SYS_openat, AT_FDCWD, address("/dev/null"), O_WRONLY);
    if (program < 0 || input < 0 || output < 0) {
        return;
    }
    // Like main: the kernel holds the soft limit against descriptors in flight.
    struct {
        std::uint64_t soft;
        std::uint64_t hard;
    } files;
    if (raw_syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, address(&files)) == 0) {
        files.soft = files.hard;
        raw_syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, address(&files), 0);
    }
    const unsigned long none = 0;
    raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, address(&none), 0, sizeof none);
    raw_syscall(SYS_setsid);
    raw_syscall(SYS_dup3, input, 0, 0);
    raw_syscall(SYS_dup3, output, 1, 0);
    raw_syscall(SYS_dup3, output, 2, 0);
    raw_syscall(SYS_dup3, control, kControlFd, 0);
    const char* const argv[] = {here(kInitName), here(kOwnNetwork), nullptr};
    const char* const environment[] = {nullptr};
    raw_syscall(
        SYS_execveat, program, address(""), address(argv), address(environment), AT_EMPTY_PATH
    );
}

// On the ordinary way out of this process.
struct Unclaimed {
    Unclaimed() = default;
    Unclaimed(const Unclaimed&) = delete;
    Unclaimed& operator=(const Unclaimed&) = delete;
    ~Unclaimed() { (void)take_early_template(); }
} const unclaimed;

}  // namespace

EarlyTemplate take_early_template() {
    EarlyTemplate taken;
    if (const int pid = std::exchange(early_pid, 0); pid != 0) {
        taken.process = ChildProcess(pid);
        taken.control = base::Fd(std::exchange(early_control, 0));
    }
    return taken;
}

}  // namespace ars::sandbox

// `stack` is what the kernel gives a program: the number of arguments, then each.
ARS_BEFORE_LIBC void ars_before_libc(const std::uintptr_t* stack) {
    using namespace ars::sandbox;
    if (stack[0] < 2 || !is_exec(reinterpret_cast<const char*>(stack[2]))) {
        return;
    }
    // Children must stay ours to reap, whatever was inherited.
    const unsigned long plain[4] = {};  // the kernel's struct sigaction
    raw_syscall(SYS_rt_sigaction, SIGCHLD, address(plain), 0, sizeof plain[0]);
    int pair[2];
    if (raw_syscall(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, address(pair)) !=
        0) {
        return;
    }
    // Without one of the standard descriptors the numbers could not be given out like this.
    if (pair[0] > STDERR_FILENO) {
        const long pid = raw_syscall(SYS_clone, SIGCHLD);
        if (pid == 0) {
            become_template(pair[1]);
            raw_syscall(SYS_exit_group, 1);
        }
        if (pid > 0) {
            early_pid = static_cast<int>(pid);
            early_control = pair[0];
            pair[0] = -1;
        }
    }
    raw_syscall(SYS_close, pair[1]);
    if (pair[0] >= 0) {
        raw_syscall(SYS_close, pair[0]);
    }
}
