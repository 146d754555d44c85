/* Every way to change what is mounted, and every way into a namespace where one could. */
#include "attempt.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif
#ifndef MOUNT_ATTR_RDONLY
#define MOUNT_ATTR_RDONLY 1
#endif

/* A child made by clone must end at once, or it would go on as a second attacker. */
static long cloned(unsigned long flags) {
    const long pid = syscall(SYS_clone, flags, 0UL, 0UL, 0UL, 0UL);
    if (pid == 0) {
        _exit(0);
    }
    if (pid > 0) {
        waitpid((pid_t)pid, NULL, __WALL);
    }
    return pid;
}

int main(void) {
    struct {
        unsigned long set, clear, propagation, userns;
    } attributes = {0, MOUNT_ATTR_RDONLY, 0, 0};
    mkdir("m", 0755);
    attempt("mount tmpfs", mount("none", "m", "tmpfs", 0, NULL));
    attempt("mount bind", mount("/etc", "m", NULL, MS_BIND, NULL));
    attempt("mount proc", mount("none", "m", "proc", 0, NULL));
    attempt("remount root writable", mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL));
    attempt("mount move", mount("/tmp", "m", NULL, MS_MOVE, NULL));
    attempt("mount shared", mount(NULL, "/", NULL, MS_SHARED, NULL));
    attempt("umount", umount2("/tmp", MNT_DETACH));
    attempt("pivot_root", syscall(SYS_pivot_root, ".", "m"));
    attempt("chroot", chroot("."));
    attempt("fsopen", syscall(SYS_fsopen, "tmpfs", 0));
    attempt("fspick", syscall(SYS_fspick, AT_FDCWD, "/", 0));
    attempt("open_tree clone", syscall(SYS_open_tree, AT_FDCWD, "/", 1));
    attempt("move_mount", syscall(SYS_move_mount, AT_FDCWD, "/tmp", AT_FDCWD, "m", 0));
    attempt("mount_setattr",
            syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, &attributes, sizeof attributes));
    attempt("unshare user", unshare(CLONE_NEWUSER));
    attempt("unshare mount", unshare(CLONE_NEWNS));
    attempt("unshare pid", unshare(CLONE_NEWPID));
    attempt("unshare net", unshare(CLONE_NEWNET));
    attempt("unshare ipc", unshare(CLONE_NEWIPC));
    attempt("unshare uts", unshare(CLONE_NEWUTS));
    attempt("unshare cgroup", unshare(CLONE_NEWCGROUP));
    attempt("unshare time", unshare(CLONE_NEWTIME));
    attempt("setns", setns(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), 0));
    attempt("clone user", cloned(CLONE_NEWUSER | SIGCHLD));
    attempt("clone mount", cloned(CLONE_NEWNS | SIGCHLD));
    attempt("clone pid", cloned(CLONE_NEWPID | SIGCHLD));
    attempt("clone net", cloned(CLONE_NEWNET | SIGCHLD));
    attempt("clone user, high bits", cloned((1UL << 56) | CLONE_NEWUSER | SIGCHLD));
    attempt("clone3", syscall(SYS_clone3, NULL, 0));
    attempt("sethostname", sethostname("owned", 5));
    return 0;
}
