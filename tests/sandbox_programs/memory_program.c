/* Runs a copy of itself from memory, where no rule about paths can see it; the copy tries the walls that count. */
#include "attempt.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "inner") == 0) {
        attempt("inner unshare", unshare(CLONE_NEWUSER));
        attempt("inner mount", mount("none", "/tmp", "tmpfs", 0, NULL));
        attempt("inner write /etc", open("/etc/owned", O_WRONLY | O_CREAT, 0600));
        attempt("inner kill 1", kill(1, SIGKILL) < 0 ? -1 : 0);
        return 0;
    }
    char *const arguments[] = {"memory_program", "inner", NULL}, *const environment[] = {NULL};
    struct stat info;
    const int self = open("/proc/self/exe", O_RDONLY);
    const int copy = memfd_create("copy", 0);
    if (fstat(self, &info) != 0 || sendfile(copy, self, NULL, (size_t)info.st_size) != info.st_size) {
        return 1;
    }
    fexecve(copy, arguments, environment);
    attempt("exec from memory", -1);
    return 0;
}
