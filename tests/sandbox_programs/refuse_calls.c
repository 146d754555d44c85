/* refuse_calls ENOSYS|EPERM|EACCES|EINVAL NUMBER... -- PROGRAM [ARGUMENT...]: runs the program under a filter that answers
   these system calls with that error, as the profiles of container engines do. */
#include "attempt.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>

static unsigned number_of(const char *name) {
    return strcmp(name, "ENOSYS") == 0 ? ENOSYS : strcmp(name, "EPERM") == 0 ? EPERM : strcmp(name, "EACCES") == 0 ? EACCES : EINVAL;
}

int main(int argc, char **argv) {
    struct sock_filter filter[64];
    unsigned short length = 0;
    int next = 2;
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (; next < argc && strcmp(argv[next], "--") != 0 && length < 60; ++next) {
        filter[length++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)atol(argv[next]), 0, 1);
        filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | number_of(argv[1]));
    }
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    if (next + 1 >= argc) {
        return 2;
    }
    /* Without no_new_privs, which would be a limit of its own; where that takes it, with it. */
    const struct sock_fprog program = {length, filter};
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0 &&
        (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)) {
        perror("refuse_calls");
        return 1;
    }
    execvp(argv[next + 1], argv + next + 1);
    perror(argv[next + 1]);
    return 1;
}
