// Misbehaving programs (tests/sandbox_programs), each against one wall, and the whole table of what
// they got.
#include "tests/cases/fixture.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace ars::tests {
namespace {

// A line of a program that must read as given: "EPERM", "EPERM|ENOSYS", "blocked" (any errno) or
// "OPEN".
struct Answer {
    const char* attempt;
    const char* namespaces;
    const char* landlock;
};

bool allowed(const std::string& verdict, const std::string& right) {
    if (right == "blocked") {
        return verdict.starts_with("blocked ");
    }
    std::istringstream choices(right);
    for (std::string one; std::getline(choices, one, '|');) {
        if (verdict == one || verdict == "blocked " + one) {
            return true;
        }
    }
    return false;
}

class Attack : public Cases {
  protected:
    json::object attack(
        const std::string& program, const std::string& arguments = {}, json::object more = {}
    ) {
        workspace_with({program});
        return run("./" + program + " " + arguments, std::move(more));
    }

    // Every line is in the table and reads as it says, and no attempt of the table is missing.
    void expect_answers(const json::object& done, const std::vector<Answer>& table) {
        std::map<std::string, std::string> verdicts;
        std::istringstream lines(text(done, "stdout"));
        for (std::string line; std::getline(lines, line);) {
            const std::size_t colon = line.find(": ");
            ASSERT_NE(colon, std::string::npos) << line;
            verdicts[line.substr(0, colon)] = line.substr(colon + 2);
        }
        for (const Answer& answer : table) {
            const std::string right = landlock() ? answer.landlock : answer.namespaces;
            const auto found = verdicts.find(answer.attempt);
            if (found == verdicts.end()) {
                ADD_FAILURE() << answer.attempt << " was not tried: " << json::serialize(done);
                continue;
            }
            EXPECT_TRUE(allowed(found->second, right))
                << answer.attempt << ": " << found->second << ", not " << right;
            verdicts.erase(found);
        }
        for (const auto& [name, verdict] : verdicts) {
            ADD_FAILURE() << "not in the table: " << name << ": " << verdict;
        }
    }

    // After an attack. In the landlock tier the kernel counts the processes of the uid, so what
    // dies elsewhere on the machine may stand in the way of the first tries.
    void expect_works() {
        json::object after;
        for (int round = 0; round < 100 && text(after, "stdout") != "here\n"; ++round) {
            std::this_thread::sleep_for(std::chrono::milliseconds(round == 0 ? 0 : 100));
            after = run("echo here");
        }
        EXPECT_EQ(text(after, "stdout"), "here\n") << json::serialize(after);
    }

    // What is in no process table of the scope's. A /proc that is the container's shows it, and
    // keeps it closed.
    static std::string out_of_sight() {
        return text(doctor(), "proc") == "outer" ? "ESRCH|ENOENT|EPERM|EACCES|EROFS"
                                                 : "ESRCH|ENOENT|EPERM";
    }

    // Every line of the program reads "blocked", with an errno of `right`.
    void expect_all(const json::object& done, const std::string& right) {
        int count = 0;
        std::istringstream lines(text(done, "stdout"));
        for (std::string line; std::getline(lines, line); ++count) {
            EXPECT_TRUE(allowed(line.substr(std::min(line.size(), line.find(": ") + 2)), right))
                << line;
        }
        EXPECT_GT(count, 3) << json::serialize(done);
    }
};

TEST_P(Attack, MountsAndNamespacesAreOutOfReach) {
    const json::object done = attack("mount_wall");
    expect_all(done, "EPERM|ENOSYS");
    EXPECT_TRUE(holds(done, "stdout", "clone3: blocked ENOSYS"));  // libc falls back on it
}

TEST_P(Attack, KernelInterfacesThatNoToolNeedsAreRefused) {
    const json::object done = attack("kernel_wall");
    expect_all(done, "EPERM|ENOSYS");
    EXPECT_TRUE(holds(done, "stdout", "io_uring_setup: blocked ENOSYS"));  // so do node and uvloop
}

#if defined(__x86_64__)
TEST_P(Attack, OtherCallTablesAreNotServed) { expect_all(attack("foreign_calls"), "EPERM|ENOSYS"); }
#endif

TEST_P(Attack, ServerAndInitAreOutOfReach) {
    // The server is not in the scope's pid namespace; without one it is there, and closed.
    const json::object done = attack("process_wall", std::to_string(session().pid()));
    expect_all(done, landlock() ? "EPERM|EACCES" : out_of_sight());
    std::ifstream limits("/proc/" + std::to_string(session().pid()) + "/limits");
    for (std::string line; std::getline(limits, line);) {
        if (line.starts_with("Max open files")) {
            EXPECT_GT(std::stol(line.substr(14)), 3) << line;
        }
    }
}

TEST_P(Attack, ToolOfAnotherScopeIsOutOfReach) {
    const std::string mark = marker();
    const Workspace second(landlock());
    Session other(GetParam(), second.options());
    EXPECT_TRUE(exited(other.run("sleep " + mark + " & true"), 0));
    std::string victim;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        if (read_text(entry.path() / "cmdline") ==
            std::string("sleep\0", 6) + mark + std::string(1, '\0')) {
            victim = entry.path().filename();
        }
    }
    ASSERT_FALSE(victim.empty());
    const json::object done = attack("process_wall", victim);
    if (landlock()) {
        // Signals, memory, limits and scheduling are walls of every tier; what /proc tells of a
        // process of the same uid is not (not_promised of the doctor), but its memory and
        // descriptors are.
        expect_answers(
            done,
            {{"1 SIGSTOP", "", "EPERM"},
             {"1 SIGKILL", "", "EPERM"},
             {"1 tgkill", "", "EPERM"},
             {"1 sigqueue", "", "EPERM"},
             {"1 pidfd_send_signal", "", "EPERM"},
             {"1 pidfd_getfd", "", "EPERM"},
             {"1 ptrace", "", "EPERM"},
             {"1 process_vm_readv", "", "EPERM"},
             {"1 process_vm_writev", "", "EPERM"},
             {"1 prlimit read", "", "EPERM"},
             {"1 prlimit write", "", "EPERM"},
             {"1 setpriority", "", "EPERM"},
             {"1 sched_setaffinity", "", "EPERM"},
             {"1 sched_setscheduler", "", "EPERM"},
             {"1 /proc environ", "", "EACCES"},
             {"1 /proc mem", "", "EACCES"},
             {"1 /proc fd/0", "", "EACCES"},
             {"1 /proc root/etc", "", "EACCES"},
             {"1 /proc cwd/.", "", "EACCES"},
             {"1 /proc exe", "", "EACCES|OPEN"},
             {"1 /proc oom_score_adj", "", "EACCES"}}
        );
    } else {
        expect_all(done, out_of_sight());
    }
    install_program("signal_by_owner", workspace().path());
    EXPECT_TRUE(exited(run("./signal_by_owner " + victim), 0));
    EXPECT_EQ(processes_with(mark), 1);
}

TEST_P(Attack, OwnInitMayBeHurtButTheNextCommandRuns) {
    const json::object done = attack("process_wall", "1 $PPID");
    for (const char* wall :
         {"1 pidfd_getfd", "1 ptrace", "1 process_vm_readv", "1 /proc environ", "1 /proc mem"}) {
        EXPECT_TRUE(holds(done, "stdout", std::string(wall) + ": blocked"))
            << wall << json::serialize(done);
    }
    // A scope that was broken from inside is replaced: at most one command is told so.
    const json::object next = run("echo here");
    if (text(next, "stdout") != "here\n") {
        EXPECT_EQ(text(run("echo here"), "stdout"), "here\n") << json::serialize(next);
    }
}

TEST_P(Attack, NothingLeadsOutOfTheNetwork) {
    // Listeners of the host's on loopback, both families, and one without a file.
    const int tcp = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    const int off = 0;
    ::setsockopt(tcp, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    ASSERT_EQ(::bind(tcp, reinterpret_cast<sockaddr*>(&any), sizeof any), 0);
    ASSERT_EQ(::listen(tcp, 16), 0);
    socklen_t size = sizeof any;
    ::getsockname(tcp, reinterpret_cast<sockaddr*>(&any), &size);
    const std::string name = "ars-attack-" + marker();
    const int local = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path + 1, sizeof address.sun_path - 2);
    ASSERT_EQ(
        ::bind(
            local, reinterpret_cast<sockaddr*>(&address), static_cast<socklen_t>(3 + name.size())
        ),
        0
    );
    ASSERT_EQ(::listen(local, 16), 0);
    expect_answers(
        attack("socket_wall", std::to_string(ntohs(any.sin6_port)) + " " + name),
        {{"tcp", "ECONNREFUSED", "EPERM|EACCES"},
         {"mptcp", "ECONNREFUSED|EPROTONOSUPPORT|ENOPROTOOPT", "EPERM|EACCES"},
         {"fast open", "ECONNREFUSED|EOPNOTSUPP", "EPERM|EACCES"},
         {"mptcp fast open", "ECONNREFUSED|EOPNOTSUPP|EPROTONOSUPPORT|ENOPROTOOPT", "EPERM|EACCES"},
         {"ipv6", "ECONNREFUSED|EAFNOSUPPORT|ENETUNREACH", "EPERM|EACCES"},
         {"abstract", "ECONNREFUSED", "EPERM|ECONNREFUSED"},
         {"raw", "EPERM", "EPERM|EACCES"},
         {"packet", "EPERM", "EPERM|EACCES"},
         {"vsock", "EPERM", "EPERM|EACCES"},
         {"vsock, high bits", "EPERM", "EPERM|EACCES"},
         {"alg", "EPERM", "EPERM|EACCES"},
         {"bluetooth", "EPERM", "EPERM|EACCES"},
         {"xdp", "EPERM", "EPERM|EACCES"}}
    );
    ::close(tcp);
    ::close(local);
}

TEST_P(Attack, NothingIsLeftInANetworkThatServesAgain) {
    // Without a network of its own no socket comes to be (EPERM, then EBADF).
    expect_all(attack("network_wall"), "EPERM|EACCES|EBADF|ENOENT|EROFS");
}

TEST_P(Attack, FilesThatWereNotGivenStayUnreadAndUnchanged) {
    const TempDir data;
    const std::string secret = data.write("store/data.mdb", "hunter2");
    ::chmod(secret.c_str(), 0666);
    ::chmod((data.path() + "/store").c_str(), 0777);
    give_to_gem(data.path());  // as a data_dir is: the tool's own uid owns it
    give_to_gem(data.path() + "/store");
    give_to_gem(secret);
    const json::object done =
        attack("file_wall", data.path() + " " + data.path() + "/store " + secret);
    if (landlock()) {
        std::istringstream lines(text(done, "stdout"));
        for (std::string line; std::getline(lines, line);) {
            // Metadata of files of the same uid is not promised there.
            if (line.find("chmod") == std::string::npos &&
                line.find("setxattr") == std::string::npos) {
                EXPECT_TRUE(allowed(line.substr(line.find(": ") + 2), "blocked")) << line;
            }
        }
    } else {
        expect_all(done, "blocked");
    }
    EXPECT_EQ(read_text(secret), "hunter2");
    EXPECT_TRUE(std::filesystem::exists(data.path() + "/store"));
}

TEST_P(Attack, NoDescriptorIsLeaked) { EXPECT_EQ(text(attack("leaked_fds"), "stdout"), "done\n"); }

TEST_P(Attack, ProgramInMemoryHasTheSameWalls) {
    expect_answers(
        attack("memory_program"),
        {{"inner unshare", "EPERM", "EPERM"},
         {"inner mount", "EPERM", "EPERM"},
         {"inner write /etc", "EROFS|EACCES", "EACCES|EROFS"},
         // Pid 1 of a namespace ignores what its children send; elsewhere it is another's.
         {"inner kill 1", "OPEN", "EPERM"}}
    );
    expect_works();
}

TEST_P(Attack, SetIdFilesCannotBeLeftInAMappedWorkspace) {
    ARS_NEEDS_ROOT();
    if (landlock()) {
        GTEST_SKIP(
        ) << "the landlock tier has no mapped workspace: it refuses one of another owner";
    }
    const TempDir roots;
    options_.workspace = roots.path();
    options_.flags = {"--allow-root-owner"};
    install_program("set_id", roots.path());
    if (!may_map_owners()) {
        GTEST_SKIP() << "no id-mapped mounts here";
    }
    const json::object done = run("./set_id");
    expect_all(done, "EPERM|ENOSYS");
    for (const auto& entry : std::filesystem::recursive_directory_iterator(roots.path())) {
        struct stat info{};
        ASSERT_EQ(::lstat(entry.path().c_str(), &info), 0);
        EXPECT_EQ(info.st_mode & (S_ISUID | S_ISGID), 0U) << entry.path();
    }
}

TEST_P(Attack, BombOfDaemonsEndsWithItsCommand) {
    const std::string mark = marker();
    const json::object done = attack("daemon_bomb", mark, {{"timeout", "1s"}});
    EXPECT_TRUE(has_status(done, "timed_out"));
    EXPECT_EQ(survivors(mark), 0);
    expect_works();
}

TEST_P(Attack, StormOfSignalsEndsWithItsCommand) {
    const std::string mark = marker();
    const json::object done = attack("signal_storm", "1 " + mark, {{"timeout", "20s"}});
    EXPECT_NE(text(done, "status"), "timed_out") << json::serialize(done);
    EXPECT_EQ(survivors(mark), 0);
    expect_works();
}

TEST_P(Attack, CommandThatKillsItsKeeperLeavesNothing) {
    const std::string mark = marker();
    run("(setsid sleep " + mark + " &); kill -9 $PPID; sleep " + mark, {{"timeout", "20s"}});
    EXPECT_EQ(survivors(mark), 0);
    expect_works();
}

TEST_P(Attack, FloodOfBytesThatAreNoTextIsBounded) {
    const json::object done = attack("flood", "100", {{"timeout", "60s"}});
    EXPECT_TRUE(exited(done, 0));
    EXPECT_GT(number(done, "omitted_bytes"), 90 * 1024 * 1024);
    EXPECT_LT(json::serialize(done).size(), 4U * 1024 * 1024);
    EXPECT_TRUE(done.at("lossy").as_bool());
    std::ifstream status("/proc/" + std::to_string(session().pid()) + "/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("VmHWM:")) {
            EXPECT_LT(std::stol(line.substr(6)), 256 * 1024) << line;
        }
    }
}

TEST_P(Attack, LinkSwappedUnderAReaderNeverLeadsOutside) {
    const TempDir outside;
    const std::string secret = outside.write("secret", "hunter2");
    workspace_with({"link_swap"});
    workspace().write("real", "mine");
    ASSERT_TRUE(exited(run("./link_swap " + secret + " >/dev/null & sleep 0.2"), 0));
    int mine = 0;
    for (int i = 0; i < 20; ++i) {
        const Finished read =
            ars::tests::run(tool_argv("read_file", {{"file_path", workspace().guest("real")}}));
        EXPECT_EQ((read.out + read.err).find("hunter2"), std::string::npos) << read.out << read.err;
        mine += read.out.find("mine") != std::string::npos ? 1 : 0;
    }
    EXPECT_GT(mine, 0);  // it did read while the two changed places
}

// All scopes and the server are one user, and the kernel counts these by user.
TEST_P(Attack, DescriptorsInFlightStopNoOtherScope) {
    const json::object done = attack("user_counts", "flight");
    EXPECT_TRUE(holds(done, "stdout", " ETOOMANYREFS")) << json::serialize(done);
    const Workspace second(landlock());
    SessionOptions options = second.options();
    options.wrapper = {"/bin/sh", "-c", "ulimit -S -n 1024; exec \"$@\"", "sh"};
    Session other(GetParam(), options);
    EXPECT_TRUE(exited(other.run("true"), 0));
    if (!landlock() || terminals_for_gem()) {
        // A terminal is a descriptor that the init sends.
        const json::object size{{"rows", 24}, {"columns", 80}};
        EXPECT_TRUE(exited(other.run("true", {{"terminal", size}}), 0));
    }
}

TEST_P(Attack, TerminalsOfAScopeStopNoOtherScope) {
    if (landlock()) {
        GTEST_SKIP() << "the landlock tier has the machine's terminals, which have no bound";
    }
    const json::object done = attack("user_counts", "terminals");
    EXPECT_EQ(text(done, "stdout"), "128 ENOSPC\n");
    const Workspace second(landlock());
    Session other(GetParam(), second.options());
    const json::object size{{"rows", 24}, {"columns", 80}};
    EXPECT_TRUE(exited(other.run("true", {{"terminal", size}}), 0));
}

ARS_INSTANTIATE_CASES(Attack);

}  // namespace
}  // namespace ars::tests
