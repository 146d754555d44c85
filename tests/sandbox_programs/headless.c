/* headless MIB [churn]: takes memory in a process whose first thread has ended, and which therefore shows none in
   /proc/PID/status. With "churn" a thread only makes the next one and ends. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static size_t bytes;
static int churn;
static time_t until;

static void *next(void *unused) {
    pthread_t thread;
    if (time(NULL) >= until) {
        puts("still here");
        fflush(stdout);
        _exit(0);
    }
    if (pthread_create(&thread, NULL, next, NULL) == 0) {
        pthread_detach(thread);
    }
    return unused;
}

static void *take(void *unused) {
    usleep(200000);
    char *const memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(memory, 1, bytes);
    until = time(NULL) + 4;
    if (!churn) {
        sleep(4);
    }
    return next(unused);
}

int main(int argc, char **argv) {
    bytes = (size_t)atoi(argc > 1 ? argv[1] : "1") << 20;
    churn = argc > 2;
    pthread_t thread;
    if (pthread_create(&thread, NULL, take, NULL) != 0) {
        return 2;
    }
    syscall(SYS_exit, 0); /* of this thread only */
    return 3;
}
