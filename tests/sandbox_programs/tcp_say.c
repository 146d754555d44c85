/* tcp_say PORT: connects to 127.0.0.1:PORT, sends its standard input, and prints what comes back until the other end
   closes. So tests speak any bytes to the proxy without a tool that may be missing or knows better. Exit code 7: no
   connection. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int pass(int from, int to) {
    char bytes[4096];
    ssize_t n = read(from, bytes, sizeof bytes);
    for (ssize_t done = 0; done < n;) {
        ssize_t w = write(to, bytes + done, (size_t)(n - done));
        if (w <= 0) {
            return 0;
        }
        done += w;
    }
    return n > 0;
}

int main(int argc, char **argv) {
    struct sockaddr_in address;
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (argc != 2) {
        return 2;
    }
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((unsigned short)atoi(argv[1]));
    if (connect(s, (struct sockaddr *)&address, sizeof address) != 0) {
        printf("%s\n", strerror(errno));
        return 7;
    }
    struct pollfd ends[2] = {{0, POLLIN, 0}, {s, POLLIN, 0}};
    while (poll(ends, 2, 10000) > 0) {
        if (ends[0].revents != 0 && !pass(0, s)) {
            ends[0].fd = -1;
        }
        if (ends[1].revents != 0 && !pass(s, 1)) {
            return 0;
        }
    }
    return 1;
}
