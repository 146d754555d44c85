/* link_swap TARGET: swaps `real` (a file) and `link` (a symbolic link to TARGET) under one name as fast as it can. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc < 2 || symlink(argv[1], "link") != 0) {
        return 2;
    }
    puts("swapping");
    fflush(stdout);
    for (const time_t until = time(NULL) + 30; time(NULL) < until;) {
        for (int i = 0; i < 1000; ++i) {
            renameat2(AT_FDCWD, "real", AT_FDCWD, "link", RENAME_EXCHANGE);
        }
    }
    return 0;
}
