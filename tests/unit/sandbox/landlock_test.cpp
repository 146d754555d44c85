// The walls of the landlock tier, each attacked from inside: files, signals, sockets, other
// processes' limits, and the end of the scope.
#include "base/fd.hpp"
#include "tests/unit/sandbox/scope_fixture.hpp"

#include <fstream>
#include <sstream>

#include <dirent.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

namespace ars::sandbox::testing {
namespace {

class Landlock : public ::testing::Test {
  protected:
    void SetUp() override {
        bench.tier() = Tier::landlock;
        if (const auto acquired = bench.acquire(); !acquired) {
            GTEST_SKIP() << "no landlock tier on this host: " << acquired.error().message;
        }
        // As the server's own files would be: gem's, so only Landlock stands before them.
        secret = outside.path() + "/plain";
        std::ofstream(secret) << "secret\n";
        (void)::chmod(secret.c_str(), 0666);
        (void)::chmod(outside.path().c_str(), 0777);
    }
    // However a test ended, closing waits for the supervisor, which removes its directory last.
    void TearDown() override {
        if (IsSkipped()) {
            return;
        }
        const std::string tmp = bench.sh("echo -n $TMPDIR").out;
        EXPECT_EQ(::access(tmp.c_str(), F_OK), 0) << tmp;
        bench.run_void(bench.sandbox().close());
        EXPECT_NE(::access(tmp.c_str(), F_OK), 0) << tmp;
    }
    std::string outsider(const std::string& attack, const std::string& argument) {
        return bench.sh(bench.install("outsider") + " " + attack + " " + argument).out;
    }
    std::string secret_text() const {
        std::ostringstream text;
        text << std::ifstream(secret).rdbuf();
        return text.str();
    }

    Bench bench;
    TemporaryDirectory outside;
    std::string secret;
};

// The bench's supervisor: our child of that name.
pid_t supervisor() {
    const std::string self = std::to_string(::getpid());
    std::ifstream file("/proc/self/task/" + self + "/children");
    for (pid_t pid = 0; file >> pid;) {
        std::string name;
        std::ifstream("/proc/" + std::to_string(pid) + "/comm") >> name;
        if (name == "ars-supervisor") {
            return pid;
        }
    }
    return 0;
}

bool anyone_runs(const std::string& argument) {
    bool found = false;
    DIR* const proc = ::opendir("/proc");
    while (const dirent* entry = ::readdir(proc)) {
        std::ifstream file(std::string("/proc/") + entry->d_name + "/cmdline");
        std::string line;
        std::getline(file, line);
        found = found || line.find(argument) != std::string::npos;
    }
    ::closedir(proc);
    return found;
}

TEST_F(Landlock, FilesOutsideAreNotReadByAnyName) {
    const std::string cat = "cat ";
    for (const std::string& name :
         {secret,
          "/proc/self/root" + secret,
          "/proc/thread-self/root" + secret,
          "/proc/self/cwd/../" + secret.substr(5),
          "/usr/../" + secret}) {
        const Outcome outcome = bench.sh(cat + name);
        EXPECT_EQ(outcome.out, "") << name;
        EXPECT_NE(outcome.err.find("Permission denied"), std::string::npos) << outcome.err;
    }
    EXPECT_EQ(outsider("read", secret), "read -13\n");
    EXPECT_EQ(outsider("memory", secret), "read -13\n") << "a program without a path is no way out";
    EXPECT_EQ(bench.sh("ln -s " + secret + " p; cat p").out, "");
    EXPECT_EQ(bench.sh("ls " + outside.path() + "; ls /; ls /tmp; ls /root").out, "");
    EXPECT_NE(bench.sh("cat /usr/bin/env | head -c 4").out, "") << "what is allowed is readable";
}

TEST_F(Landlock, DescriptorsOfDirectoriesOutsideLeadNowhere) {
    EXPECT_EQ(
        outsider("directory", secret),
        "openat -13\nlist -13\nrelative -13\ncreate -13\nmkdir -13\nunlink -13\nrename -13\n"
        "symlink -13\nreopen -13\n"
    );
    EXPECT_EQ(secret_text(), "secret\n");
}

TEST_F(Landlock, FilesOutsideAreNotWrittenMovedLinkedOrCut) {
    EXPECT_EQ(outsider("truncate", secret), "truncate -13\n");
    const Outcome outcome = bench.sh(
        "echo x >" + secret + "; echo x >>" + secret + "; rm -f " + secret + "; mv " + secret +
        " log; ln " + secret + " log; cp /usr/bin/env " + outside.path() + "/f; touch f; mv f " +
        outside.path() + "/f; ln f " + outside.path() + "/log; mv . " + outside.path() +
        "/p; mkdir " + outside.path() +
        "/p; ln /usr/bin/env log; touch /usr/bin/f /etc/f /dev/f "
        "/f; mv \"$TMPDIR\" ./p; rmdir \"$TMPDIR\"; ls"
    );
    EXPECT_EQ(outcome.out, "f\nprobe\n") << outcome.err;
    EXPECT_EQ(secret_text(), "secret\n");
    EXPECT_NE(::access((outside.path() + "/f").c_str(), F_OK), 0);
}

TEST_F(Landlock, FilesMoveFreelyInsideTheWorkspace) {
    const Outcome outcome = bench.sh(
        "mkdir -p \"$TMPDIR\"/a/b && cd \"$TMPDIR\"/a && touch one && mv one b/two && ln b/two "
        "three "
        "&& ln -s b four && mkfifo five && mv b ../b && ls .. && rm -r \"$TMPDIR\"/a && echo done"
    );
    EXPECT_EQ(outcome.out, "a\nb\nhome\ndone\n") << outcome.err;
}

TEST_F(Landlock, NoSignalLeavesTheScope) {
    const pid_t victim = supervisor();
    ASSERT_GT(victim, 0);
    Bench other;
    other.tier() = Tier::landlock;
    const Outcome sleeper = other.sh("sleep 1000 & echo $!");
    const std::string refused = "kill -1\nprobe -1\ntgkill -1\ntkill -1\nsigqueue -1\npidfd -1\n";
    for (const std::string& pid :
         {std::to_string(victim),
          std::to_string(::getpid()),
          sleeper.out.substr(0, sleeper.out.find('\n'))}) {
        EXPECT_EQ(outsider("signal", pid), refused) << pid;
    }
    EXPECT_EQ(other.sh("kill -0 " + sleeper.out).shell_code(), 0) << "the other scope's still runs";
    EXPECT_NE(bench.sh("kill -9 1").shell_code(), 0);  // C49
    EXPECT_EQ(bench.sh("echo alive").out, "alive\n");
}

TEST_F(Landlock, SocketsAreUnixOnlyAndAbstractNamesStayInside) {
    const std::string call = bench.install("raw_call") + " " + std::to_string(SYS_socket) + " ";
    constexpr int kMptcp = 262;
    for (const std::string& arguments :
         {std::to_string(AF_INET) + " 1 0",
          std::to_string(AF_INET) + " 2 0",
          std::to_string(AF_INET6) + " 1 0",
          std::to_string(AF_INET) + " 1 " + std::to_string(kMptcp),
          std::to_string(AF_NETLINK) + " 3 0"}) {
        EXPECT_EQ(bench.sh(call + arguments).out, "-1\n") << arguments;
    }
    EXPECT_EQ(bench.sh(call + "1 1 0").out, "3\n");
    const std::string name = "ars-landlock-test-" + std::to_string(::getpid());
    const base::Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path + 1, name.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    ASSERT_EQ(::listen(listener.get(), 1), 0);
    EXPECT_EQ(outsider("abstract", name), "connect -1\nsendto refused\n");
}

TEST_F(Landlock, LimitsAndPrioritiesOfOtherProcessesAreOutOfReach) {
    const std::string call = bench.install("raw_call") + " ";
    const std::string pid = " " + std::to_string(supervisor()) + " ";
    EXPECT_EQ(bench.sh(call + std::to_string(SYS_prlimit64) + pid + "0 0 0").out, "-1\n");
    EXPECT_EQ(bench.sh(call + std::to_string(SYS_prlimit64) + " 0 0 0 0").out, "0\n");
    EXPECT_EQ(bench.sh(call + std::to_string(SYS_setpriority) + " 0" + pid + "19").out, "-1\n");
    EXPECT_EQ(bench.sh(call + std::to_string(SYS_sched_setaffinity) + pid + "0 0").out, "-1\n");
    EXPECT_EQ(bench.sh(call + std::to_string(SYS_sched_setscheduler) + pid + "0 0").out, "-1\n");
    EXPECT_EQ(bench.sh(call + std::to_string(SYS_ioprio_set) + " 1" + pid + "0").out, "-1\n");
    EXPECT_EQ(bench.sh(call + std::to_string(SYS_ptrace) + " 16" + pid + "0 0").out, "-1\n");
}

TEST_F(Landlock, C26_OnlyTerminalsTakeDeviceRequests) {
    if (terminals_for_gem()) {
        EXPECT_EQ(outsider("device", "/dev/ptmx"), "open 0\nioctl 0\n");
    }
    EXPECT_EQ(outsider("device", "/dev/zero"), "open 0\nioctl -13\n");
    EXPECT_EQ(outsider("device", "/dev/kmsg"), "open -13\nioctl -9\n");
}

TEST_F(Landlock, ProcessLimitComesOnTopOfWhatTheUserRuns) {
    const std::string proc_limit = bench.sh("ulimit -u").out;
    EXPECT_GE(std::atoi(proc_limit.c_str()), static_cast<int>(bench.policy().processes));
    EXPECT_EQ(bench.sh("ulimit -n; ulimit -c; ulimit -f").out, "4096\n0\n4194304\n");
}

TEST_F(Landlock, AToolThatKillsTheForkerEndsItsScopeWithAllItsProcesses) {
    const std::string seconds = "54321." + std::to_string(::getpid());
    const auto before = bench.scope();
    const std::string tmp = bench.sh("echo -n $TMPDIR").out;
    ASSERT_EQ(::access(tmp.c_str(), F_OK), 0);
    const Outcome outcome = bench.sh(
        "setsid sleep " + seconds + " & sleep " + seconds +
        " & forker=$(grep PPid /proc/$PPID/status | cut -f2); kill -9 $forker; sleep " + seconds
    );
    EXPECT_EQ(outcome.status, OutcomeStatus::signalled);
    EXPECT_EQ(outcome.detail, "the sandbox ended while the command ran");
    EXPECT_FALSE(anyone_runs(seconds));
    EXPECT_FALSE(before->alive());
    EXPECT_EQ(bench.sh("echo again").out, "again\n");
    EXPECT_NE(::access(tmp.c_str(), F_OK), 0);
}

TEST_F(Landlock, AScopeWhoseToolsStopEverythingStillEnds) {
    const std::string seconds = "54322." + std::to_string(::getpid());
    const Outcome outcome = bench.sh("sleep " + seconds + " & kill -STOP -1; sleep " + seconds, 1s);
    EXPECT_EQ(outcome.status, OutcomeStatus::timed_out);
    EXPECT_FALSE(anyone_runs(seconds));
}

TEST_F(Landlock, ReleaseEndsADaemonizingBombAndRemovesItsDirectory) {
    const std::string seconds = "54323." + std::to_string(::getpid());
    bench.policy().processes = 64;
    const std::string tmp =
        bench.command(shell("mkdir -p $TMPDIR/a/b; echo -n $TMPDIR"), "bomb").out;
    // Each link of the chain is in a session of its own and outlives its parent by nothing.
    bench.command(
        shell(
            "hop() { (setsid bash -c \"$(declare -f hop); sleep " + seconds +
            " & hop\" &) }; hop; hop; hop; sleep 0.3"
        ),
        "bomb"
    );
    bench.run_void(bench.sandbox().release({"alice", "bomb", "default"}));
    EXPECT_FALSE(anyone_runs(seconds));
    EXPECT_NE(::access(tmp.c_str(), F_OK), 0);
}

TEST_F(Landlock, C67_SharedMemoryIsSharedAndItsFilesAreTheUsersOwn) {
    const std::string name = "/dev/shm/ars-landlock-" + std::to_string(::getpid());
    EXPECT_EQ(bench.sh("echo seen >" + name).shell_code(), 0);
    EXPECT_EQ(bench.command(shell("cat " + name + "; rm " + name), "two").out, "seen\n");
}

TEST_F(Landlock, AMissingRequiredPathNamesTheStep) {
    const std::string workspace = bench.workspace();
    auto spec = [workspace]() -> base::Result<ScopeSpec> {
        ScopeSpec made = small_spec({}, Tier::landlock, workspace);
        made.access.rules.push_back({fsmount::Access::run, "/nonexistent/path"});
        return made;
    };
    const auto made = bench.run(bench.sandbox().acquire({"alice", "broken", "default"}, spec));
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, "scope_setup_failed");
    EXPECT_EQ(made.error().sys_errno, ENOENT);
    EXPECT_NE(made.error().message.find("step landlock"), std::string::npos);
}

}  // namespace
}  // namespace ars::sandbox::testing
