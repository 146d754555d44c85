#include "sandbox/denied_calls.hpp"

#include "sandbox/process_tree.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ars::sandbox {

namespace {

constexpr std::size_t kCallsNamed =
    16;                            // of one command: one that tries them all is named by these
constexpr int kDeepestTree = 256;  // parents looked at; a scope has 512 processes

// What tells one refused use of a call from another.
std::uint32_t telling_argument(const seccomp_data& data) {
    switch (data.nr) {
        case SYS_socket:
        case SYS_socketpair:
            return static_cast<std::uint32_t>(data.args[0]);
        case SYS_ioctl:
            return static_cast<std::uint32_t>(data.args[1]);
        default:
            return 0;
    }
}

}  // namespace

std::optional<DeniedCalls::Waiting> DeniedCalls::next() const {
    // Receiving blocks, so look first. We are the only receiver: what is seen here is still counted
    // below, even when its caller has been killed meanwhile.
    pollfd waiting{listener_.get(), POLLIN, 0};
    if (::poll(&waiting, 1, 0) != 1 || (waiting.revents & POLLIN) == 0) {
        return std::nullopt;
    }
    // A newer kernel's structure may be longer, and it wants all of it zero.
    union {
        seccomp_notif notification;
        std::byte room[512]{};
    } received;
    if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_RECV, &received) != 0) {
        return std::nullopt;
    }
    const seccomp_notif& notification = received.notification;
    return Waiting{
        notification.id,
        static_cast<pid_t>(notification.pid),
        {notification.data.nr, telling_argument(notification.data)}
    };
}

void DeniedCalls::refuse(const Waiting& waiting) const {
    union {
        seccomp_notif_resp response;
        std::byte room[512]{};
    } answer;
    answer.response.id = waiting.token;
    answer.response.error = -EPERM;
    // It fails when the caller was killed meanwhile, who needs no answer then.
    (void)::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

KeeperSlot* DeniedCalls::command_of(pid_t thread, std::list<KeeperSlot>& slots, int proc) {
    const auto find = [&slots](auto matches) -> KeeperSlot* {
        const auto found = std::find_if(slots.begin(), slots.end(), matches);
        return found == slots.end() ? nullptr : &*found;
    };
    // Most processes stay in the session that their command began in.
    const pid_t session = ::getsid(thread);
    const auto began = [session](const KeeperSlot& slot) { return slot.session == session; };
    if (KeeperSlot* const slot = session > 0 ? find(began) : nullptr) {
        return slot;
    }
    pid_t pid = thread;
    for (int depth = 0; depth < kDeepestTree && pid > 1; ++depth) {
        pid = parent_of(proc, pid);
        const auto minds = [pid](const KeeperSlot& slot) { return slot.keeper == pid; };
        if (KeeperSlot* const slot = find(minds)) {
            return slot;
        }
    }
    return nullptr;
}

bool DeniedCalls::first_time(KeeperSlot* slot, DeniedCall call) {
    std::vector<DeniedCall>& seen = slot == nullptr ? unattributed_ : slot->denied;
    if (seen.size() >= kCallsNamed || std::find(seen.begin(), seen.end(), call) != seen.end()) {
        return false;
    }
    seen.push_back(call);
    return true;
}

}  // namespace ars::sandbox
