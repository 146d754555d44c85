/* Exchanges two names without end: `swap_names A B`. Between a check and a use of A there is always
   a moment in which it is B. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/syscall.h>
#include <fcntl.h>
#include <unistd.h>

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

int main(int argc, char** argv) {
    if (argc != 3) {
        return 2;
    }
    for (;;) {
        if (syscall(SYS_renameat2, AT_FDCWD, argv[1], AT_FDCWD, argv[2], RENAME_EXCHANGE) != 0) {
            perror("renameat2");
            return 1;
        }
        usleep(200);
    }
}
