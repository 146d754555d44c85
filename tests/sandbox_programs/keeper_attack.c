// Attacks what minds a command: keeper_attack stop | kill | bomb. "stop" and "kill" send SIGSTOP or
// SIGKILL to the parent's parent (the keeper, when a shell started this) and go on for a second;
// "bomb" sends every signal that can be survived to every process, again and again, for two.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int parent_of(int pid) {
    char path[64];
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE* file = fopen(path, "r");
    if (file != NULL) {
        if (fscanf(file, "%*d (%*[^)]) %*c %d", &parent) != 1) {
            parent = 0;
        }
        fclose(file);
    }
    return parent;
}

int main(int argc, char** argv) {
    if (argc < 2) {
        return 2;
    }
    if (strcmp(argv[1], "bomb") == 0) {
        for (int number = 1; number <= 64; ++number) {
            signal(number, SIG_IGN);
        }
        for (const time_t until = time(NULL) + 3; time(NULL) < until;) {
            for (int number = 1; number <= 64; ++number) {
                if (number != SIGKILL && number != SIGSTOP) {
                    kill(-1, number);
                    kill(1, number);
                }
            }
        }
        puts("survived");
        return 0;
    }
    const int keeper = parent_of(getppid());
    const int number = strcmp(argv[1], "kill") == 0 ? SIGKILL : SIGSTOP;
    printf("%d\n", keeper > 1 ? kill(keeper, number) : -1);
    fflush(stdout);
    sleep(1);
    return 7;
}
