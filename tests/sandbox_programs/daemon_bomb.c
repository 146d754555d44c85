/* daemon_bomb MARK: processes that leave their session and their parent, ignore every signal and make more of
   themselves as fast as the kernel lets them. MARK keeps their argument list findable. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

int main(void) {
    for (int number = 1; number < 65; ++number) {
        signal(number, SIG_IGN);
    }
    puts("started");
    fflush(stdout);
    for (;;) {
        if (fork() == 0) {
            setsid();
        }
        sched_yield();
    }
}
