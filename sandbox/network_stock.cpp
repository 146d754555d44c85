#include "sandbox/network_stock.hpp"

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
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

// POSIX message queues of the namespace that this process is in. `root` is their directory, opened
// at the first look.
bool has_named_queues(base::Fd& root) {
    if (!root) {
        const base::Fd context(::fsopen("mqueue", FSOPEN_CLOEXEC));
        if (!context) {
            return errno != ENODEV;  // a kernel without them
        }
        if (::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
            return true;
        }
        const base::Fd mount(::fsmount(context.get(), FSMOUNT_CLOEXEC, 0));
        root = base::Fd(::openat(mount.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    }
    if (::lseek(root.get(), 0, SEEK_SET) != 0) {
        return true;
    }
    alignas(dirent64) char entries[256];
    const long size = ::syscall(SYS_getdents64, root.get(), entries, sizeof entries);
    for (long at = 0; at < size;) {
        const auto& entry = *reinterpret_cast<const dirent64*>(entries + at);
        const std::string_view name = entry.d_name;
        if (name != "." && name != "..") {
            return true;
        }
        at += entry.d_reclen;
    }
    return size <= 0;
}

}  // namespace

// No socket of any family, not even one that the kernel still frees, and no TCP connection that
// waits out its end.
bool NetworkStock::is_quiet(Network& network) {
    char text[kSockstatBytes];
    const ssize_t size = ::pread(network.sockstat.get(), text, sizeof text, 0);
    const std::string_view counts(text, size > 0 ? static_cast<std::size_t>(size) : 0);
    return counts.starts_with("sockets: used 0\n") &&
           counts.find(" tw 0 ") != std::string_view::npos && !has_objects(network);
}

// Shared memory, semaphores and queues outlive the processes that made them. The kernel tells how
// many there are in the namespace that one is in, so this process goes there for a moment.
bool NetworkStock::has_objects(Network& network) {
    if (::setns(network.spaces.ipc.get(), CLONE_NEWIPC) != 0) {
        return true;
    }
    shm_info memory{};
    seminfo semaphores{};
    msginfo queues{};
    const bool some = ::shmctl(0, SHM_INFO, reinterpret_cast<shmid_ds*>(&memory)) < 0 ||
                      ::semctl(0, 0, SEM_INFO, &semaphores) < 0 ||
                      ::msgctl(0, MSG_INFO, reinterpret_cast<msqid_ds*>(&queues)) < 0 ||
                      memory.used_ids != 0 || semaphores.semusz != 0 || queues.msgpool != 0 ||
                      has_named_queues(network.queues);
    return !leave_ipc() || some;
}

// What this process stays in would outlive its scope, with all the memory in it. It can't go back
// to the one that it came from, which is another user namespace's.
base::Result<void> NetworkStock::leave_ipc() {
    if (own_ipc_) {
        return ::setns(own_ipc_.get(), CLONE_NEWIPC) == 0 ? base::Result<void>{}
                                                          : fail_step("setns NEWIPC");
    }
    if (::unshare(CLONE_NEWIPC) != 0) {
        return fail_step("unshare NEWIPC");
    }
    own_ipc_ = base::Fd(::openat(proc_.get(), "self/ns/ipc", O_RDONLY | O_CLOEXEC));
    return own_ipc_ ? base::Result<void>{} : fail_step("open ns/ipc");
}

void NetworkStock::begin_first() {
    beside_ = std::thread([this] { made_beside_ = make(); });
}

base::Result<void> NetworkStock::finish_first() {
    beside_.join();
    if (!made_beside_) {
        return made_beside_;
    }
    return ::setns(idle_.back().spaces.network.get(), CLONE_NEWNET) == 0
               ? base::Result<void>{}
               : fail_step("setns NEWNET");
}

base::Result<void> NetworkStock::make() {
    if (::unshare(CLONE_NEWNET | CLONE_NEWIPC) != 0) {
        return fail_step("unshare NEWNET and NEWIPC");
    }
    if (auto raised = raise_loopback(); !raised) {
        return raised;
    }
    Network made;
    made.spaces.network =
        base::Fd(::openat(proc_.get(), "thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    made.spaces.ipc = base::Fd(::openat(proc_.get(), "thread-self/ns/ipc", O_RDONLY | O_CLOEXEC));
    made.sockstat =
        base::Fd(::openat(proc_.get(), "thread-self/net/sockstat", O_RDONLY | O_CLOEXEC));
    if (!made.spaces.network || !made.spaces.ipc || !made.sockstat) {
        return fail_step("open ns/net and ns/ipc");
    }
    idle_.push_back(std::move(made));
    return {};
}

base::Result<Spaces> NetworkStock::take(std::uint64_t id) {
    if (idle_.empty()) {
        auto made = make();
        if (made) {
            made = leave_ipc();
        }
        if (!made) {
            return std::unexpected(made.error());
        }
    }
    const Spaces& kept = idle_.back().spaces;
    auto network = base::duplicate(kept.network.get());
    auto ipc = base::duplicate(kept.ipc.get());
    if (!network || !ipc) {
        return std::unexpected(network ? ipc.error() : network.error());
    }
    used_[id] = std::move(idle_.back());
    idle_.pop_back();
    return Spaces{std::move(*network), std::move(*ipc)};
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
    own_ipc_.reset();
    idle_.clear();
    used_.clear();
}

}  // namespace ars::sandbox
