/* Tries to leave something behind in the network of its scope, which serves another scope afterwards: links, addresses,
   routes, neighbours, settings, and the ports of daemons. */
#include "attempt.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/route.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* One request of rtnetlink; `body` is the family's own structure. The kernel's answer is the result. */
static long ask(int type, const void *body, size_t size) {
    struct {
        struct nlmsghdr header;
        char body[64];
    } request = {.header = {.nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE}};
    struct {
        struct nlmsghdr header;
        struct nlmsgerr answer;
        char rest[256];
    } reply = {0};
    memcpy(request.body, body, size);
    request.header.nlmsg_len = NLMSG_LENGTH(size);
    const int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    long result = send(netlink, &request, request.header.nlmsg_len, 0);
    if (result >= 0) {
        result = recv(netlink, &reply, sizeof reply, 0);
    }
    if (netlink >= 0) {
        close(netlink);
    }
    if (result >= 0) {
        errno = -reply.answer.error;
        return errno == 0 ? 0 : -1;
    }
    return result;
}

static void set(const char *name, const char *value) {
    char path[128];
    snprintf(path, sizeof path, "/proc/sys/net/%s", name);
    const int file = open(path, O_WRONLY | O_CLOEXEC);
    attempt(name, file < 0 ? -1 : write(file, value, strlen(value)));
}

int main(void) {
    const struct ifinfomsg down = {.ifi_index = 1, .ifi_change = IFF_UP};
    const struct ifaddrmsg address = {.ifa_family = AF_INET, .ifa_prefixlen = 8, .ifa_index = 1};
    const struct rtmsg route = {.rtm_family = AF_INET, .rtm_table = RT_TABLE_MAIN, .rtm_type = RTN_LOCAL};
    const struct ndmsg neighbour = {.ndm_family = AF_INET, .ndm_ifindex = 1, .ndm_state = NUD_PERMANENT};
    const struct rtmsg rule = {.rtm_family = AF_INET, .rtm_type = 1 /* FR_ACT_TO_TBL */};
    attempt("link down", ask(RTM_NEWLINK, &down, sizeof down));
    attempt("address", ask(RTM_NEWADDR, &address, sizeof address));
    attempt("address away", ask(RTM_DELADDR, &address, sizeof address));
    attempt("route", ask(RTM_NEWROUTE, &route, sizeof route));
    attempt("neighbour", ask(RTM_NEWNEIGH, &neighbour, sizeof neighbour));
    attempt("rule", ask(RTM_NEWRULE, &rule, sizeof rule));
    const int plain = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct ifreq request = {.ifr_name = "lo"};
    attempt("flags", ioctl(plain, SIOCSIFFLAGS, &request));
    request.ifr_mtu = 1280;
    attempt("mtu", ioctl(plain, SIOCSIFMTU, &request));
    struct rtentry entry = {.rt_dst = {.sa_family = AF_INET}, .rt_flags = RTF_UP};
    attempt("old route", ioctl(plain, SIOCADDRT, &entry));
    const int mark = 1;
    attempt("mark", setsockopt(plain, SOL_SOCKET, SO_MARK, &mark, sizeof mark));
    attempt("transparent", setsockopt(plain, IPPROTO_IP, IP_TRANSPARENT, &mark, sizeof mark));
    attempt("firewall", setsockopt(plain, IPPROTO_IP, 64 /* IPT_SO_SET_REPLACE */, &request, sizeof request));
    const struct sockaddr_in web = {.sin_family = AF_INET, .sin_port = htons(80), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    attempt("port 80", bind(plain, (const struct sockaddr *)&web, sizeof web));
    attempt("tun", open("/dev/net/tun", O_RDWR | O_CLOEXEC));
    set("ipv4/ip_forward", "1");
    set("ipv4/ip_unprivileged_port_start", "0");
    set("ipv4/ping_group_range", "0 2147483647");
    set("ipv4/tcp_keepalive_time", "1");
    set("ipv4/ip_local_port_range", "1024 1025");
    set("ipv6/conf/all/disable_ipv6", "1");
    set("unix/max_dgram_qlen", "0");
    set("core/somaxconn", "0");
    return 0;
}
