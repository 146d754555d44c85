/* process_wall PID...: what one process can do to another that is none of its business: the init, the keeper, the
   server, a tool of another scope. The name of each attempt starts with the place of the pid in the list. */
#include "attempt.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>

static int place;
static pid_t victim;

static void on_victim(const char *what, long result) {
    char name[64];
    const int saved = errno;
    snprintf(name, sizeof name, "%d %s", place, what);
    errno = saved;
    attempt(name, result);
}

static void on_proc(const char *file, int flags) {
    char path[64], what[64];
    snprintf(path, sizeof path, "/proc/%d/%s", victim, file);
    snprintf(what, sizeof what, "/proc %s", file);
    const int fd = open(path, flags | O_CLOEXEC);
    on_victim(what, fd);
    close(fd);
}

static void attack(void) {
    char byte;
    struct iovec here = {&byte, 1}, there = {(void *)0x400000, 1};
    struct rlimit old, tiny = {3, 3};
    struct sched_param param = {0};
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(0, &cpus);
    siginfo_t info = {.si_signo = SIGWINCH, .si_code = SI_QUEUE};
    on_victim("SIGSTOP", kill(victim, SIGSTOP));
    on_victim("SIGKILL", kill(victim, SIGKILL));
    on_victim("tgkill", syscall(SYS_tgkill, victim, victim, SIGKILL));
    on_victim("sigqueue", syscall(SYS_rt_sigqueueinfo, victim, SIGWINCH, &info));
    const long pidfd = syscall(SYS_pidfd_open, victim, 0);
    if (pidfd >= 0) {
        on_victim("pidfd_send_signal", syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0));
        on_victim("pidfd_getfd", syscall(SYS_pidfd_getfd, pidfd, 0, 0));
    } else {
        on_victim("pidfd_send_signal", -1);
        on_victim("pidfd_getfd", -1);
    }
    on_victim("ptrace", ptrace(PTRACE_SEIZE, victim, NULL, NULL));
    on_victim("process_vm_readv", process_vm_readv(victim, &here, 1, &there, 1, 0));
    on_victim("process_vm_writev", process_vm_writev(victim, &here, 1, &there, 1, 0));
    on_victim("prlimit read", syscall(SYS_prlimit64, victim, RLIMIT_NOFILE, NULL, &old));
    on_victim("prlimit write", syscall(SYS_prlimit64, victim, RLIMIT_NOFILE, &tiny, NULL));
    on_victim("setpriority", setpriority(PRIO_PROCESS, (id_t)victim, 19));
    on_victim("sched_setaffinity", sched_setaffinity(victim, sizeof cpus, &cpus));
    on_victim("sched_setscheduler", sched_setscheduler(victim, SCHED_IDLE, &param));
    on_proc("environ", O_RDONLY);
    on_proc("mem", O_RDWR);
    on_proc("fd/0", O_RDONLY);
    on_proc("root/etc", O_RDONLY);
    on_proc("cwd/.", O_RDONLY);
    on_proc("exe", O_RDONLY);
    on_proc("oom_score_adj", O_WRONLY);
}

int main(int argc, char **argv) {
    for (place = 1; place < argc; ++place) {
        victim = atoi(argv[place]);
        attack();
    }
    return 0;
}
