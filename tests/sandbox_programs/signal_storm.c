/* signal_storm SECONDS: bombs everything it can name with every signal but STOP and KILL: its parent (the keeper), pid
   1, its group, and everything it may signal at all; then with KILL. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv) {
    const time_t until = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1);
    const pid_t parent = getppid();
    for (int number = 1; number < 65; ++number) {
        signal(number, SIG_IGN);
    }
    while (time(NULL) < until) {
        for (int number = 1; number < 65; ++number) {
            /* 32 and 33 are the C library's own, and not to be ignored. */
            if (number != SIGKILL && number != SIGSTOP && number != 32 && number != 33) {
                kill(parent, number);
                kill(1, number);
                kill(0, number);
                kill(-1, number);
            }
        }
    }
    puts("stormed");
    fflush(stdout);
    kill(parent, SIGSTOP);
    kill(-1, SIGKILL);
    kill(parent, SIGKILL);
    kill(1, SIGKILL);
    puts("survived");
    return 0;
}
