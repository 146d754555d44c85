/* Uses up what the kernel counts by user or for the whole machine: user_counts flight|terminals. Prints how much there
   was and the error after it, and ends; a child of it keeps everything. */
#include "attempt.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { kAtOnce = 253 }; /* SCM_MAX_FD */

static int put_in_flight(void) {
    static int pair[2] = {-1, -1};
    int descriptors[kAtOnce] = {0};
    char control[CMSG_SPACE(sizeof descriptors)] = {0};
    struct iovec text = {"x", 1};
    struct msghdr message = {.msg_iov = &text, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof descriptors);
    memcpy(CMSG_DATA(rights), descriptors, sizeof descriptors);
    while (pair[0] < 0 || sendmsg(pair[0], &message, MSG_DONTWAIT) < 0) {
        /* a full socket: the next one */
        if ((pair[0] >= 0 && errno != EAGAIN) || socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) != 0) {
            return 0;
        }
    }
    return kAtOnce;
}

static int open_terminal(void) { return open("/dev/ptmx", O_RDWR | O_NOCTTY) < 0 ? 0 : 1; }

int main(int argc, char **argv) {
    int (*const take)(void) = argc > 1 && strcmp(argv[1], "terminals") == 0 ? open_terminal : put_in_flight;
    int count = 0;
    for (int more = take(); more > 0; more = take()) {
        count += more;
    }
    const char *const error = strerrorname_np(errno);
    if (fork() == 0) {
        for (int fd = 0; fd < 3; ++fd) {
            close(fd);
        }
        pause();
    }
    printf("%d %s\n", count, error);
    return 0;
}
