#include "sandbox/network_stock.hpp"

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ars::sandbox {

namespace {

constexpr std::size_t kSockstatBytes = 4096;

std::unexpected<base::Error> fail_step(const std::string& what) {
    return base::fail_errno("scope_setup_failed", what, errno);
}

base::Result<void> raise_loopback() {
    const base::Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket) {
        return fail_step("socket for lo");
    }
    ifreq request{};
    std::strncpy(request.ifr_name, "lo", IFNAMSIZ - 1);
    if (::ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) {
        return fail_step("SIOCGIFFLAGS lo");
    }
    request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
    return ::ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0 ? base::Result<void>{}
                                                              : fail_step("SIOCSIFFLAGS lo");
}

}  // namespace

// No socket of any family, not even one that the kernel still frees, and no TCP connection that
// waits out its end.
bool NetworkStock::is_quiet(const Network& network) {
    char text[kSockstatBytes];
    const ssize_t size = ::pread(network.sockstat.get(), text, sizeof text, 0);
    const std::string_view counts(text, size > 0 ? static_cast<std::size_t>(size) : 0);
    return counts.starts_with("sockets: used 0\n") &&
           counts.find(" tw 0 ") != std::string_view::npos;
}

void NetworkStock::begin_first() {
    beside_ = std::thread([this] { made_beside_ = make(); });
}

base::Result<void> NetworkStock::finish_first() {
    beside_.join();
    if (!made_beside_) {
        return made_beside_;
    }
    return ::setns(idle_.back().space.get(), CLONE_NEWNET) == 0 ? base::Result<void>{}
                                                                : fail_step("setns NEWNET");
}

base::Result<void> NetworkStock::make() {
    if (::unshare(CLONE_NEWNET) != 0) {
        return fail_step("unshare NEWNET");
    }
    if (auto raised = raise_loopback(); !raised) {
        return raised;
    }
    Network made;
    made.space = base::Fd(::openat(proc_.get(), "thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    made.sockstat =
        base::Fd(::openat(proc_.get(), "thread-self/net/sockstat", O_RDONLY | O_CLOEXEC));
    if (!made.space || !made.sockstat) {
        return fail_step("open ns/net");
    }
    idle_.push_back(std::move(made));
    return {};
}

base::Result<base::Fd> NetworkStock::take(std::uint64_t id) {
    if (idle_.empty()) {
        if (auto made = make(); !made) {
            return std::unexpected(made.error());
        }
    }
    auto copy = base::duplicate(idle_.back().space.get());
    if (copy) {
        used_[id] = std::move(idle_.back());
        idle_.pop_back();
    }
    return copy;
}

void NetworkStock::give_back(std::uint64_t id) {
    const auto found = used_.find(id);
    if (found == used_.end()) {
        return;
    }
    Network network = std::move(found->second);
    used_.erase(found);
    if (idle_.size() < kKept && is_quiet(network)) {
        idle_.push_back(std::move(network));
    }
}

void NetworkStock::forget() {
    idle_.clear();
    used_.clear();
}

}  // namespace ars::sandbox
