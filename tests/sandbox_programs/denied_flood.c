// Makes a refused call (keyctl) over and over from many threads: denied_flood THREADS SECONDS. Prints
// how many answers were not EPERM. An EINTR is an answer too: signals arrive all the time.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t until;
static long wrong;

static void on_alarm(int signal) { (void)signal; }

static void* flood(void* unused) {
    while (time(NULL) < until) {
        if (syscall(SYS_keyctl, 0, 0, 0, 0, 0) != -1 || (errno != EPERM && errno != EINTR)) {
            __sync_fetch_and_add(&wrong, 1);
        }
    }
    return unused;
}

int main(int argc, char** argv) {
    const int threads = argc > 1 ? atoi(argv[1]) : 50;
    until = time(NULL) + (argc > 2 ? atoi(argv[2]) : 2) + 1;
    struct sigaction action = {.sa_handler = on_alarm};  // no SA_RESTART
    sigaction(SIGALRM, &action, NULL);
    const struct itimerval often = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &often, NULL);
    pthread_t made[256];
    for (int i = 0; i < threads && i < 256; ++i) {
        if (pthread_create(&made[i], NULL, flood, NULL) != 0) {
            return 2;
        }
    }
    for (int i = 0; i < threads && i < 256; ++i) {
        pthread_join(made[i], NULL);
    }
    printf("%ld\n", wrong);
    return 0;
}
