/* left_object KIND: says whether an object of that kind that outlives its processes is there already, else makes it. */
#include "attempt.h"

#include <fcntl.h>
#include <mqueue.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

enum { key = 4711 };

static long find(const char *kind, int make) {
    const int flags = 0600 | (make ? IPC_CREAT | IPC_EXCL : 0);
    switch (kind[0]) {
        case 'm': return shmget(key, 4096, flags);
        case 's': return semget(key, 1, flags);
        case 'q': return msgget(key, flags);
        case 'n': return mq_open("/left", O_RDWR | (make ? O_CREAT | O_EXCL : 0), 0600, NULL);
        default: return -1;
    }
}

int main(int argc, char **argv) {
    const char *kind = argc > 1 ? argv[1] : "";
    if (find(kind, 0) >= 0) {
        puts("found");
    } else {
        puts(find(kind, 1) >= 0 ? "made" : strerrorname_np(errno));
    }
    return 0;
}
