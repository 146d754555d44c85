/* memory_twins MIB: two children with as much memory of their own as their parent, to the page, while it is suspended
   in vfork: what a look at the figures could take for the memory that such a parent lends. */
#include "attempt.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

static const size_t kSpare = 1 << 20;

static long figure(const char *status, const char *name) {
    const char *const at = strstr(status, name);
    return at == NULL ? -1 : atol(at + strlen(name));
}

static long memory_of(int pid) {
    char path[64], status[4096] = {0};
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const long size = read(file, status, sizeof status - 1);
    close(file);
    return size < 0 ? -1 : figure(status, "\nRssAnon:") + figure(status, "\nRssShmem:");
}

/* Small pages, so that the figure can be met exactly. */
static char *map(size_t bytes) {
    char *const memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    return memory;
}

int main(int argc, char **argv) {
    const size_t bytes = (size_t)atoi(argc > 1 ? argv[1] : "1") << 20;
    char *const memory = map(bytes), *const spare = map(kSpare), *const lead = map(kSpare);
    memset(memory, 1, bytes);
    for (int i = 0; i < 2; ++i) {
        if (fork() == 0) {
            sleep(1); /* the parent has its last figure by now */
            for (size_t used = 0; used < kSpare && memory_of(getppid()) > memory_of(getpid()); used += 4096) {
                spare[used] = 1;
            }
            sleep(1);
            memset(memory, 2, bytes); /* no page is shared any more, and the figure stays */
            sleep(3);
            _exit(0);
        }
    }
    memset(lead, 1, kSpare / 4);
    if (vfork() == 0) {
        sleep(7);
        _exit(0);
    }
    puts("still here");
    return 0;
}
