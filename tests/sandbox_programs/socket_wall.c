/* socket_wall TCP_PORT ABSTRACT_NAME: every way out of the network that was tried on sandboxes in public, against a
   listener of the host's on loopback and one without a file. */
#include "attempt.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

static struct sockaddr_in host;

/* -1 with errno of whichever of the two failed. */
static int connected(int type, int protocol) {
    const int fd = socket(AF_INET, type | SOCK_CLOEXEC, protocol);
    return fd < 0 ? fd : connect(fd, (struct sockaddr *)&host, sizeof host);
}

static long fast_open(int protocol) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, protocol);
    if (fd < 0) {
        return fd;
    }
    return sendto(fd, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL, (struct sockaddr *)&host, sizeof host);
}

static long through_ipv6(void) {
    struct sockaddr_in6 mapped = {.sin6_family = AF_INET6, .sin6_port = host.sin_port};
    const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    inet_pton(AF_INET6, "::ffff:127.0.0.1", &mapped.sin6_addr);
    return fd < 0 ? fd : connect(fd, (struct sockaddr *)&mapped, sizeof mapped);
}

static long abstract(const char *name) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    strncpy(address.sun_path + 1, name, sizeof address.sun_path - 2);
    return connect(fd, (struct sockaddr *)&address, (socklen_t)(sizeof address.sun_family + 1 + strlen(name)));
}

int main(int argc, char **argv) {
    if (argc < 3) {
        return 2;
    }
    host.sin_family = AF_INET;
    host.sin_port = htons((unsigned short)atoi(argv[1]));
    host.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    attempt("tcp", connected(SOCK_STREAM, 0));
    attempt("mptcp", connected(SOCK_STREAM, IPPROTO_MPTCP));
    attempt("fast open", fast_open(0));
    attempt("mptcp fast open", fast_open(IPPROTO_MPTCP));
    attempt("ipv6", through_ipv6());
    attempt("abstract", abstract(argv[2]));
    attempt("raw", socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
    attempt("packet", socket(AF_PACKET, SOCK_RAW, 0));
    attempt("vsock", socket(AF_VSOCK, SOCK_STREAM, 0));
    attempt("vsock, high bits", syscall(SYS_socket, AF_VSOCK | (1UL << 32), SOCK_STREAM, 0));
    attempt("alg", socket(AF_ALG, SOCK_SEQPACKET, 0));
    attempt("bluetooth", socket(AF_BLUETOOTH, SOCK_RAW, 0));
    attempt("xdp", socket(44, SOCK_RAW, 0));
    return 0;
}
