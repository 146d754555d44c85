/* Tries to leave files with set-id bits or capabilities in the current directory, by every call that takes a mode. In
   a workspace whose files keep another owner on disk, one of these would be a way to become that owner. */
#include "attempt.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#define MODE (S_ISUID | 0755)

int main(void) {
    struct open_how how = {.flags = O_CREAT | O_WRONLY, .mode = MODE};
    const int fd = open("plain", O_CREAT | O_RDWR, 0755);
    mkdir("directory", 0755);
    attempt("chmod", chmod("plain", MODE));
    attempt("chmod set-gid", chmod("plain", S_ISGID | 0755));
    attempt("chmod, high bits", syscall(SYS_fchmod, fd, MODE | (1UL << 32)));
    attempt("fchmod", fchmod(fd, MODE));
    attempt("fchmodat", syscall(SYS_fchmodat, AT_FDCWD, "plain", MODE));
    attempt("fchmodat2", syscall(452, AT_FDCWD, "plain", MODE, 0));
    attempt("open", syscall(SYS_openat, AT_FDCWD, "opened", O_CREAT | O_WRONLY, MODE));
    attempt("openat2", syscall(SYS_openat2, AT_FDCWD, "opened2", &how, sizeof how));
#if defined(__x86_64__)
    attempt("old open", syscall(SYS_open, "opened3", O_CREAT | O_WRONLY, MODE));
    attempt("creat", syscall(SYS_creat, "created", MODE));
    attempt("mknod", syscall(SYS_mknod, "node", S_IFREG | MODE, 0));
#endif
    attempt("mknodat", syscall(SYS_mknodat, AT_FDCWD, "node2", S_IFREG | MODE, 0));
    attempt("device", syscall(SYS_mknodat, AT_FDCWD, "device", S_IFCHR | 0666, 0x103));
    attempt("file capability", setxattr("plain", "security.capability", "\0\0\0\2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20, 0));
    return 0;
}
