/* outsider ATTACK ARGUMENT: reaches for what is outside of a sandbox, one way at a time, and prints what the kernel
   said: 0, or a negative errno. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static void answer(const char *what, long result) { printf("%s %d\n", what, result < 0 ? -errno : 0); }

static void read_path(const char *path) { answer("read", open(path, O_RDONLY)); }

/* Every call that can signal a process by number, and the kernel's own signals for a socket's owner. */
static void signal_process(pid_t pid) {
    int pair[2];
    answer("kill", kill(pid, SIGTERM));
    answer("probe", kill(pid, 0));
    answer("tgkill", syscall(SYS_tgkill, pid, pid, SIGTERM));
    answer("tkill", syscall(SYS_tkill, pid, SIGTERM));
    siginfo_t info = {.si_signo = SIGTERM, .si_code = SI_QUEUE};
    answer("sigqueue", syscall(SYS_rt_sigqueueinfo, pid, SIGTERM, &info));
    const long fd = syscall(SYS_pidfd_open, pid, 0);
    answer("pidfd", fd < 0 ? fd : syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0));
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0) {
        (void)fcntl(pair[0], F_SETOWN, pid);
        (void)fcntl(pair[0], F_SETSIG, SIGKILL);
        (void)fcntl(pair[0], F_SETFL, O_ASYNC);
        (void)!write(pair[1], "x", 1);
    }
}

/* A directory held by descriptor and entered, then a plain name. */
static void by_directory(char *path) {
    char *const name = strrchr(path, '/') + 1;
    name[-1] = '\0';
    const int directory = open(path, O_PATH | O_DIRECTORY);
    answer("openat", openat(directory, name, O_RDONLY));
    answer("list", openat(directory, ".", O_RDONLY | O_DIRECTORY));
    if (fchdir(directory) == 0) {
        answer("relative", open(name, O_RDONLY));
        answer("create", open("made-by-a-tool", O_WRONLY | O_CREAT, 0600));
        answer("mkdir", mkdir("made-by-a-tool", 0700));
        answer("unlink", unlink(name));
        answer("rename", rename(name, "renamed"));
        answer("symlink", symlink("/", "made-by-a-tool"));
    }
    const int object = openat(directory, name, O_PATH);
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", object);
    answer("reopen", open(link, O_RDONLY));
}

static void connect_abstract(const char *name) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path + 1, name, strlen(name));
    const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    const int stream = socket(AF_UNIX, SOCK_STREAM, 0);
    answer("connect", connect(stream, (struct sockaddr *)&address, size));
    const int datagram = socket(AF_UNIX, SOCK_DGRAM, 0);
    const long sent = sendto(datagram, "x", 1, 0, (struct sockaddr *)&address, size);
    /* EPROTOTYPE: the name was looked up before the scope was asked. */
    printf("sendto %s\n", sent < 0 ? "refused" : "sent");
}

/* The program itself from memory: no path, so no rule of a path. */
static void from_memory(const char *path) {
    const int self = open("/proc/self/exe", O_RDONLY);
    const int copy = memfd_create("copy", 0);
    struct stat info;
    (void)fstat(self, &info);
    (void)!sendfile(copy, self, NULL, (size_t)info.st_size);
    char *const argv[] = {"copy", "read", (char *)path, NULL};
    fexecve(copy, argv, environ);
    answer("fexecve", -1);
}

static void device(const char *path) {
    struct winsize size;
    const int fd = open(path, O_RDWR | O_NOCTTY);
    answer("open", fd);
    answer("ioctl", ioctl(fd, TIOCGWINSZ, &size));
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IONBF, 0);
    if (argc < 3) {
        return 2;
    }
    if (strcmp(argv[1], "read") == 0) {
        read_path(argv[2]);
    } else if (strcmp(argv[1], "signal") == 0) {
        signal_process((pid_t)strtol(argv[2], NULL, 10));
    } else if (strcmp(argv[1], "directory") == 0) {
        by_directory(argv[2]);
    } else if (strcmp(argv[1], "truncate") == 0) {
        answer("truncate", truncate(argv[2], 0));
    } else if (strcmp(argv[1], "abstract") == 0) {
        connect_abstract(argv[2]);
    } else if (strcmp(argv[1], "memory") == 0) {
        from_memory(argv[2]);
    } else if (strcmp(argv[1], "device") == 0) {
        device(argv[2]);
    }
    return 0;
}
