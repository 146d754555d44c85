#include "sandbox/lock_down.hpp"

#include "fsmount/layout.hpp"
#include "sandbox/landlock_rules.hpp"

#include <cerrno>
#include <cstring>
#include <vector>

#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ars::sandbox {

namespace {

std::unexpected<base::Error> fail_step(const char* what) {
    return base::fail_errno("scope_setup_failed", what, errno);
}

bool limit(__rlimit_resource resource, rlim_t value) {
    rlimit now{};
    if (::getrlimit(resource, &now) != 0) {
        return false;
    }
    // A hard limit below the wanted one was set by whoever started us, and stays.
    const rlim_t allowed = value < now.rlim_max ? value : now.rlim_max;
    const rlimit wanted{allowed, allowed};
    return ::setrlimit(resource, &wanted) == 0;
}

std::vector<sock_filter> instructions_of(const std::string& program) {
    std::vector<sock_filter> instructions(program.size() / sizeof(sock_filter));
    std::memcpy(instructions.data(), program.data(), instructions.size() * sizeof(sock_filter));
    return instructions;
}

sock_fprog program_of(std::vector<sock_filter>& instructions) {
    return {static_cast<unsigned short>(instructions.size()), instructions.data()};
}

// The same program, which asks a listener where it would answer EPERM. No listener where the kernel
// does not know them (EINVAL, ENOSYS) or a filter around us has one (EBUSY).
base::Fd attach_listening(std::vector<sock_filter> instructions) {
    for (sock_filter& instruction : instructions) {
        if (instruction.code == (BPF_RET | BPF_K) &&
            instruction.k == (SECCOMP_RET_ERRNO | static_cast<unsigned>(EPERM))) {
            instruction.k = SECCOMP_RET_USER_NOTIF;
        }
    }
    const sock_fprog filter = program_of(instructions);
    // From the moment that the call was seen only a fatal signal interrupts its caller
    // (Linux 5.19).
    for (const unsigned long patience : {SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, 0UL}) {
        base::Fd listener(static_cast<int>(::syscall(
            SYS_seccomp,
            SECCOMP_SET_MODE_FILTER,
            SECCOMP_FILTER_FLAG_NEW_LISTENER | patience,
            &filter
        )));
        if (listener) {
            return listener;
        }
    }
    return {};
}

}  // namespace

base::Result<void> drop_root() {
    if (::geteuid() != 0) {
        return {};
    }
    if (::setgroups(0, nullptr) != 0) {
        return fail_step("setgroups");
    }
    if (::setresgid(fsmount::kGemGid, fsmount::kGemGid, fsmount::kGemGid) != 0) {
        return fail_step("setresgid");
    }
    if (::setresuid(fsmount::kGemUid, fsmount::kGemUid, fsmount::kGemUid) != 0) {
        return fail_step("setresuid");
    }
    // The change of identity took /proc/self away from us; id maps are written there.
    return ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0 ? base::Result<void>{}
                                                     : fail_step("PR_SET_DUMPABLE");
}

base::Result<void> set_limits(const InitSpec& spec) {
    if (!limit(RLIMIT_CORE, 0)) {
        return fail_step("RLIMIT_CORE");
    }
    if (!limit(RLIMIT_NPROC, spec.processes)) {
        return fail_step("RLIMIT_NPROC");
    }
    if (!limit(RLIMIT_FSIZE, spec.file_size)) {
        return fail_step("RLIMIT_FSIZE");
    }
    return {};
}

base::Result<void> drop_capabilities() {
    for (int capability = 0; capability < 64; ++capability) {
        if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) {
            if (errno == EINVAL && capability > 0) {
                break;  // past the last one of this kernel
            }
            return fail_step("PR_CAPBSET_DROP");
        }
    }
    return clear_capabilities();
}

base::Result<void> clear_capabilities() {
    if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) {
        return fail_step("PR_CAP_AMBIENT");
    }
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[2]{};
    if (::syscall(SYS_capset, &header, none) != 0) {
        return fail_step("capset");
    }
    return {};
}

base::Result<void> forbid_new_privileges() {
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return fail_step("PR_SET_NO_NEW_PRIVS");
    }
    return {};
}

base::Result<void> restrict_shared_network(const InitSpec& spec) {
    if (spec.own_network || landlock_abi() < kLandlockScopedAbi) {
        return {};
    }
    return scope_signals_and_sockets();
}

base::Result<base::Fd> attach_filter(const std::string& program) {
    std::vector<sock_filter> instructions = instructions_of(program);
    if (base::Fd listener = attach_listening(instructions)) {
        return listener;
    }
    const sock_fprog filter = program_of(instructions);
    if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) != 0) {
        return fail_step("PR_SET_SECCOMP");
    }
    return base::Fd();
}

}  // namespace ars::sandbox
