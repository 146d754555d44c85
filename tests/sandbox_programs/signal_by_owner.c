/* signal_by_owner PID: makes the kernel send SIGIO, which ends a process that does not expect it, by making
   PID the owner of a socket and of a watched directory. The calls themselves are for everybody. */
#include "attempt.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>

int main(int argc, char **argv) {
    const int pid = argc > 1 ? atoi(argv[1]) : 0;
    const struct f_owner_ex owner = {F_OWNER_PID, pid};
    int pair[2];
    signal(SIGIO, SIG_IGN); /* where PID is nobody, the directory's owner is this process */
    if (pid <= 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        return 2;
    }
    attempt("owner of a socket", fcntl(pair[0], F_SETOWN_EX, &owner));
    fcntl(pair[0], F_SETFL, O_ASYNC);
    attempt("send", send(pair[1], "x", 1, 0));
    const int directory = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    attempt("owner of a directory", fcntl(directory, F_SETOWN_EX, &owner));
    fcntl(directory, F_NOTIFY, DN_CREATE | DN_MULTISHOT);
    attempt("create", open("noticed", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    return 0;
}
