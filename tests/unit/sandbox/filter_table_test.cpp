// Every system call of this machine against the filter of the default policy. A scope's init and
// its keepers run behind the same filter and would wait for themselves if they made a denied call,
// so no change of it goes unseen: who changes the filter changes this table.
#include "sandbox/seccomp_filter.hpp"
#include "tests/unit/sandbox/bpf_interpreter.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <linux/audit.h>

namespace ars::sandbox {
namespace {

#if defined(__x86_64__)

constexpr int kNewest = 469;  // of the calls that were looked at

struct Table {
    std::string denied;    // EPERM whatever the arguments
    std::string absent;    // ENOSYS whatever the arguments
    std::string depends;   // on their arguments; never a kill
    std::string elsewise;  // verdicts that are none of ours
};

// Small numbers, single bits and the refused requests of terminals: what rules of the filter test.
std::vector<std::uint64_t> telling_arguments() {
    std::vector<std::uint64_t> values{0x5412, 0x541C, 0x5423, ~std::uint64_t{0}};
    for (std::uint64_t small = 0; small < 48; ++small) {
        values.push_back(small);
    }
    for (unsigned bit = 6; bit < 32; ++bit) {
        values.push_back(std::uint64_t{1} << bit);
    }
    return values;
}

// In two arguments at a time: no rule of the filter reads more.
std::set<std::uint32_t> verdicts_of(const BpfInterpreter& program, int number) {
    static const std::vector<std::uint64_t> values = telling_arguments();
    std::set<std::uint32_t> found;
    seccomp_data call{};
    call.nr = number;
    call.arch = AUDIT_ARCH_X86_64;
    for (const auto& [one, other] : {std::pair{0, 1}, {0, 2}, {1, 2}, {2, 3}}) {
        for (const std::uint64_t first : values) {
            for (const std::uint64_t second : values) {
                call.args[one] = first;
                call.args[other] = second;
                found.insert(program.run(call).value_or(SECCOMP_RET_KILL_PROCESS));
            }
        }
        call.args[one] = call.args[other] = 0;
    }
    return found;
}

Table table_of(const FilterOptions& options) {
    const BpfInterpreter program(build_seccomp_filter(options));
    Table table;
    for (int number = 0; number <= kNewest; ++number) {
        std::string name = syscall_name(number);
        name = (name.starts_with("system call") ? std::to_string(number) : name) + " ";
        const std::set<std::uint32_t> verdicts = verdicts_of(program, number);
        for (const std::uint32_t verdict : verdicts) {
            const std::uint32_t action = verdict & SECCOMP_RET_ACTION_FULL;
            if (action != SECCOMP_RET_ALLOW && action != SECCOMP_RET_ERRNO) {
                table.elsewise += name;
            }
        }
        if (verdicts.size() > 1) {
            table.depends += name;
        } else if (*verdicts.begin() == (SECCOMP_RET_ERRNO | EPERM)) {
            table.denied += name;
        } else if (*verdicts.begin() == (SECCOMP_RET_ERRNO | ENOSYS)) {
            table.absent += name;
        } else if (*verdicts.begin() != SECCOMP_RET_ALLOW) {
            table.elsewise += name;
        }
    }
    return table;
}

// In the order of their numbers. What is not here is allowed.
constexpr const char* kDenied =
    "ptrace syslog uselib vhangup modify_ldt pivot_root adjtimex chroot acct "
    "settimeofday mount umount2 swapon swapoff reboot sethostname setdomainname iopl "
    "ioperm create_module init_module delete_module quotactl nfsservctl "
    "lookup_dcookie clock_settime kexec_load add_key request_key keyctl migrate_pages "
    "move_pages perf_event_open fanotify_init name_to_handle_at open_by_handle_at "
    "clock_adjtime setns process_vm_readv process_vm_writev kcmp finit_module "
    "kexec_file_load bpf userfaultfd open_tree move_mount fsopen fsconfig fsmount "
    "fspick pidfd_getfd process_madvise mount_setattr quotactl_fd lsm_set_self_attr "
    "open_tree_attr ";
constexpr const char* kAbsent =
    "io_uring_setup io_uring_enter io_uring_register clone3 memfd_secret 457 458 ";
// Family, namespace flags, terminal request, process or listener decide.
constexpr const char* kDepends =
    "ioctl socket socketpair setsockopt clone setpriority sched_setparam sched_setscheduler "
    "sched_setaffinity ioprio_set unshare prlimit64 sched_setattr seccomp ";
constexpr const char* kDependsInLandlock =  // no IP sockets, so no options of theirs
    "ioctl socket socketpair clone setpriority sched_setparam sched_setscheduler "
    "sched_setaffinity ioprio_set unshare prlimit64 sched_setattr seccomp ";

TEST(FilterTable, OfTheDefaultPolicyIsTheOneThatWasLookedAt) {
    const Table table = table_of({});
    EXPECT_EQ(table.denied, kDenied);
    EXPECT_EQ(table.absent, kAbsent);
    EXPECT_EQ(table.depends, kDepends);
    EXPECT_EQ(table.elsewise, "");
}

TEST(FilterTable, OfTheLandlockTierIsTheOneThatWasLookedAt) {
    FilterOptions options;
    options.tier = Tier::landlock;
    const Table table = table_of(options);
    EXPECT_EQ(table.denied, kDenied);
    EXPECT_EQ(table.absent, kAbsent);
    EXPECT_EQ(table.depends, kDependsInLandlock);
    EXPECT_EQ(table.elsewise, "");
}

TEST(FilterTable, CallsThatCameLaterAreAbsent) {
    const BpfInterpreter program(build_seccomp_filter({}));
    for (int number = kNewest + 1; number < 700; ++number) {
        EXPECT_EQ(
            verdicts_of(program, number), (std::set<std::uint32_t>{SECCOMP_RET_ERRNO | ENOSYS})
        );
    }
}

#endif

}  // namespace
}  // namespace ars::sandbox
