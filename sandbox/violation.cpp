#include "sandbox/violation.hpp"

#include "sandbox/seccomp_filter.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

namespace ars::sandbox {

namespace {

struct Named {
    std::uint32_t number;
    const char* name;
};

constexpr Named kFamilies[] = {
    {AF_INET, "AF_INET"},
    {AF_INET6, "AF_INET6"},
    {AF_NETLINK, "AF_NETLINK"},
    {AF_PACKET, "AF_PACKET"},
    {AF_VSOCK, "AF_VSOCK"},
    {AF_ALG, "AF_ALG"},
    {AF_BLUETOOTH, "AF_BLUETOOTH"},
    {AF_CAN, "AF_CAN"},
    {AF_TIPC, "AF_TIPC"},
    {AF_KEY, "AF_KEY"},
    {AF_RDS, "AF_RDS"},
    {AF_XDP, "AF_XDP"},
};

constexpr Named kRequests[] = {{TIOCSTI, "TIOCSTI"}, {TIOCLINUX, "TIOCLINUX"}};

template <std::size_t N>
std::string with_argument(std::string call, const Named (&known)[N], std::uint32_t argument) {
    const auto* const found =
        std::find_if(std::begin(known), std::end(known), [argument](const Named& n) {
            return n.number == argument;
        });
    return call + "(" + (found == std::end(known) ? std::to_string(argument) : found->name) + ")";
}

struct Advice {
    const char* calls;  // each between spaces
    const char* text;
};

constexpr Advice kAdvice[] = {
    {" ptrace process_vm_readv process_vm_writev process_madvise ",
     "debuggers and strace need the policy `debug`"},
    {" unshare clone setns ", "nested sandboxes are refused; for a browser pass --no-sandbox"},
    {" mount umount umount2 pivot_root chroot fsopen fsmount fsconfig move_mount open_tree "
     "mount_setattr ",
     "the mounts of the sandbox are fixed; work below /home/gem/user-data and $TMPDIR"},
    {" socket socketpair ",
     "of sockets there are unix, IPv4 and IPv6 ones, as far as the policy has a network"},
    {" keyctl add_key request_key ", "there is no kernel keyring; keep keys in files"},
    {" bpf perf_event_open ", "the kernel can't be traced from here"},
    {" chmod fchmod fchmodat fchmodat2 creat mknod mknodat open openat ",
     "set-user-id and set-group-id bits are refused in this workspace"},
    {" ioctl ", "nothing can be typed into a terminal from inside"},
};

}  // namespace

std::string denied_call_name(int number, std::uint32_t argument) {
    std::string name = syscall_name(number);
    switch (number) {
        case SYS_socket:
        case SYS_socketpair:
            return with_argument(std::move(name), kFamilies, argument);
        case SYS_ioctl:
            return with_argument(std::move(name), kRequests, argument);
        default:
            return name;
    }
}

std::string denied_call_advice(const std::vector<std::string>& names) {
    std::string text;
    for (const Advice& advice : kAdvice) {
        const auto helps = [&advice](const std::string& name) {
            const std::string word = " " + name.substr(0, name.find('(')) + " ";
            return std::string_view(advice.calls).find(word) != std::string_view::npos;
        };
        if (std::any_of(names.begin(), names.end(), helps)) {
            text += (text.empty() ? "" : "; ") + std::string(advice.text);
        }
    }
    return text;
}

}  // namespace ars::sandbox
