#include "sandbox/privileges.hpp"

#include "fsmount/layout.hpp"

#include <cerrno>

#include <grp.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace ars::sandbox {

namespace {

std::unexpected<base::Error> fail_drop(const char* what) {
    return base::fail_errno("drop_failed", what, errno);
}

}  // namespace

base::Result<void> drop_to_gem() {
    if (::geteuid() == 0) {
        for (int capability = 0; capability < 64; ++capability) {
            // Without CAP_SETPCAP (a container that dropped it) the set stays; no_new_privs in each
            // scope and the lack of set-id programs in it still keep tools from using it.
            if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 && errno != EPERM) {
                break;
            }
        }
        if (::setgroups(0, nullptr) != 0) {
            return fail_drop("setgroups (the container needs CAP_SETGID, or start as uid 1000)");
        }
        if (::setresgid(fsmount::kGemGid, fsmount::kGemGid, fsmount::kGemGid) != 0) {
            return fail_drop("setresgid 1000 (the container needs CAP_SETGID, or start as uid 1000)"
            );
        }
        if (::setresuid(fsmount::kGemUid, fsmount::kGemUid, fsmount::kGemUid) != 0) {
            return fail_drop("setresuid 1000 (the container needs CAP_SETUID, or start as uid 1000)"
            );
        }
        if (::setresuid(0, 0, 0) == 0) {
            return base::fail(
                base::ErrorKind::internal, "drop_failed", "root came back after it was dropped"
            );
        }
    }
    if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
        return fail_drop("PR_SET_DUMPABLE");
    }
    return {};
}

}  // namespace ars::sandbox
