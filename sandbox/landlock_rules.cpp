#include "sandbox/landlock_rules.hpp"

#include "base/fd.hpp"

#include <cerrno>
#include <cstdint>
#include <string>

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ars::sandbox {

namespace {

using fsmount::Access;
using fsmount::AccessRule;

struct RulesetAttr {
    std::uint64_t handled_access_fs = 0;
    std::uint64_t handled_access_net = 0;
    std::uint64_t scoped = 0;
};
constexpr std::uint64_t kScopeAbstractUnixSocket = 1;
constexpr std::uint64_t kScopeSignal = 2;
constexpr std::uint64_t kTruncate = 1ULL << 14U;  // ABI 3
constexpr std::uint64_t kIoctlDev = 1ULL << 15U;  // ABI 5
constexpr std::uint64_t kAllOfAbi6 = (1ULL << 16U) - 1;

constexpr std::uint64_t kRead = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t kFileOnly = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                                    LANDLOCK_ACCESS_FS_READ_FILE | kTruncate | kIoctlDev;
constexpr std::uint64_t kDevice =
    LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate;

std::uint64_t rights(Access access) {
    switch (access) {
        case Access::list:
            return LANDLOCK_ACCESS_FS_READ_DIR;
        case Access::read:
            return kRead;
        case Access::run:
            return kRead | LANDLOCK_ACCESS_FS_EXECUTE;
        case Access::write:
            return kAllOfAbi6 &
                   ~(LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK | kIoctlDev);
        case Access::shared_memory:
            return kRead | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG |
                   LANDLOCK_ACCESS_FS_REMOVE_FILE | kTruncate;
        case Access::device:
            return kDevice;
        case Access::terminal:
            return kDevice | LANDLOCK_ACCESS_FS_READ_DIR | kIoctlDev;
    }
    return 0;
}

std::unexpected<base::Error> fail_step(const std::string& what, int error) {
    return base::fail_errno("scope_setup_failed", what, error);
}

base::Result<base::Fd> make_ruleset(const RulesetAttr& attr) {
    // A kernel that knows less than the structure says refuses it: nothing is taken away silently.
    base::Fd ruleset(static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0))
    );
    if (!ruleset) {
        return fail_step("landlock_create_ruleset", errno);
    }
    return ruleset;
}

base::Result<void> restrict_self(const base::Fd& ruleset) {
    if (::syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0) {
        return fail_step("landlock_restrict_self", errno);
    }
    return {};
}

base::Result<void> allow_beneath(
    const base::Fd& ruleset, const base::Fd& object, std::uint64_t allowed, const std::string& path
) {
    landlock_path_beneath_attr attr{};
    attr.allowed_access = allowed;
    attr.parent_fd = object.get();
    if (::syscall(SYS_landlock_add_rule, ruleset.get(), LANDLOCK_RULE_PATH_BENEATH, &attr, 0) !=
        0) {
        return fail_step("landlock_add_rule " + path, errno);
    }
    return {};
}

base::Result<void> add_rule(const base::Fd& ruleset, const AccessRule& rule) {
    // A device may stand behind a link (/dev/ptmx); nothing else may.
    const bool device = rule.access == Access::device || rule.access == Access::terminal;
    const base::Fd object(::open(rule.path.c_str(), O_PATH | O_CLOEXEC | (device ? 0 : O_NOFOLLOW))
    );
    if (!object) {
        const bool gone = errno == ENOENT || errno == EACCES || errno == ENOTDIR;
        return gone && !rule.required ? base::Result<void>{}
                                      : fail_step("open " + rule.path, errno);
    }
    struct stat status{};
    if (::fstat(object.get(), &status) != 0) {
        return fail_step("stat " + rule.path, errno);
    }
    return allow_beneath(
        ruleset,
        object,
        rights(rule.access) & (S_ISDIR(status.st_mode) ? kAllOfAbi6 : kFileOnly),
        rule.path
    );
}

base::Result<void> enter_scopes(std::uint64_t scoped) {
    auto ruleset = make_ruleset({.scoped = scoped});
    return ruleset ? restrict_self(*ruleset) : std::unexpected(ruleset.error());
}

}  // namespace

int landlock_abi() {
    const long abi =
        ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return abi < 0 ? -errno : static_cast<int>(abi);
}

base::Result<void> scope_signals() {
    // Before Linux 6.15 a domain that says nothing of files denies moving them between directories,
    // to all domains below it too.
    auto ruleset =
        make_ruleset({.handled_access_fs = LANDLOCK_ACCESS_FS_REFER, .scoped = kScopeSignal});
    if (!ruleset) {
        return std::unexpected(ruleset.error());
    }
    auto added = allow_beneath(
        *ruleset, base::Fd(::open("/", O_PATH | O_CLOEXEC)), LANDLOCK_ACCESS_FS_REFER, "/"
    );
    return added ? restrict_self(*ruleset) : added;
}

base::Result<void> scope_signals_and_sockets() {
    return enter_scopes(kScopeSignal | kScopeAbstractUnixSocket);
}

base::Result<void> enter_domain(const std::vector<AccessRule>& rules) {
    auto ruleset = make_ruleset(
        {.handled_access_fs = kAllOfAbi6, .scoped = kScopeSignal | kScopeAbstractUnixSocket}
    );
    if (!ruleset) {
        return std::unexpected(ruleset.error());
    }
    for (const AccessRule& rule : rules) {
        if (auto added = add_rule(*ruleset, rule); !added) {
            return added;
        }
    }
    return restrict_self(*ruleset);
}

}  // namespace ars::sandbox
