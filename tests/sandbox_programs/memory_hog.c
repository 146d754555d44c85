// Uses memory: memory_hog HOW MIB. "private" and "shared" keep that much for ten seconds; "forked" has
// five children that share it for two; "vforked" has it and starts programs for two seconds; "storm"
// forks without end, each child taking its own.
#define _GNU_SOURCE
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char** environ;

static void take(size_t mib, int kind) {
    const size_t bytes = mib << 20;
    char* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(3);
    }
    memset(memory, 1, bytes);
}

int main(int argc, char** argv) {
    if (argc < 3) {
        return 2;
    }
    const char* how = argv[1];
    const size_t mib = (size_t)atoi(argv[2]);
    if (strcmp(how, "storm") == 0) {
        signal(SIGCHLD, SIG_IGN);
        for (;;) {
            if (fork() == 0) {
                setsid();
                take(mib, MAP_PRIVATE);
            }
        }
    }
    take(mib, strcmp(how, "shared") == 0 ? MAP_SHARED : MAP_PRIVATE);
    if (strcmp(how, "forked") == 0) {
        for (int i = 0; i < 5; ++i) {
            if (fork() == 0) {
                sleep(2);
                _exit(0);
            }
        }
        while (wait(NULL) > 0) {
        }
        return 0;
    }
    if (strcmp(how, "vforked") == 0) {
        const time_t until = time(NULL) + 3;
        char* arguments[] = {"/bin/true", NULL};
        while (time(NULL) < until) {
            pid_t child = 0;
            if (posix_spawn(&child, arguments[0], NULL, NULL, arguments, environ) == 0) {
                waitpid(child, NULL, 0);
            }
        }
        return 0;
    }
    sleep(10);
    puts("still here");
    return 0;
}
