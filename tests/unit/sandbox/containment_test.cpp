// What a tool inside a scope sees and may do: identity, mounts, network, environment, refused
// system calls.
#include "base/fd.hpp"
#include "tests/unit/sandbox/scope_fixture.hpp"

#include <cstdlib>
#include <set>
#include <sstream>

#include <sys/socket.h>
#include <sys/syscall.h>

namespace ars::sandbox::testing {
namespace {

class Containment : public ::testing::Test {
  protected:
    void SetUp() override {
        if (const auto acquired = bench.acquire(); !acquired) {
            GTEST_SKIP() << "no namespaces tier on this host: " << acquired.error().message;
        }
    }
    // Runs tests/sandbox_programs/raw_call with these arguments; the kernel's answer as text.
    std::string raw_call(const std::string& arguments) {
        const Outcome outcome = bench.sh(bench.install("raw_call") + " " + arguments);
        return outcome.out +
               (outcome.status == OutcomeStatus::exited ? "" : to_string(outcome.status));
    }
    static std::string text(long number) { return std::to_string(number); }

    Bench bench;
};

const std::string kPermission = "-1\n";  // EPERM
constexpr std::uint64_t kHighBit = std::uint64_t{1} << 32U;

TEST_F(Containment, ToolIsGemWithoutCapabilitiesUnderItsOwnPidOne) {
    const Outcome outcome = bench.sh(
        "id -u; id -g; id -G; grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):' "
        "/proc/self/status; "
        "tr '\\0' ' ' </proc/1/cmdline; hostname"
    );
    const std::string none = "0000000000000000\n";
    EXPECT_EQ(
        outcome.out,
        "1000\n1000\n1000\nCapInh:\t" + none + "CapPrm:\t" + none + "CapEff:\t" + none +
            "CapBnd:\t" + none + "CapAmb:\t" + none +
            "NoNewPrivs:\t1\nSeccomp:\t2\nars-scope-init own ars\n"
    );
    EXPECT_LT(std::atoi(bench.sh("echo $$").out.c_str()), 200);
}

TEST_F(Containment, OnlyThePlannedMountsAreThere) {
    std::set<std::string> planned{"/"};
    for (const fsmount::Mount& m : small_plan("/x").mounts) {
        if (m.kind != fsmount::MountKind::directory && m.kind != fsmount::MountKind::symlink) {
            planned.insert(m.guest);
        }
    }
    std::istringstream lines(bench.sh("cut -d' ' -f5 /proc/self/mountinfo").out);
    std::set<std::string> seen;
    for (std::string line; std::getline(lines, line);) {
        // A bound directory brings what this machine has mounted below it.
        if (!line.starts_with("/usr/") && !line.starts_with("/etc/")) {
            seen.insert(line);
        }
    }
    EXPECT_EQ(seen, planned);
}

TEST_F(Containment, RootAndImageAreReadOnlyAndTheWorkspaceIsNot) {
    const Outcome outcome = bench.sh(
        "for d in / /usr /usr/bin /etc /home /home/gem /dev; do touch $d/x 2>/dev/null && echo $d; "
        "done; "
        "touch /home/gem/user-data/t.txt /tmp/x /dev/shm/x && stat -c '%u:%g' "
        "/home/gem/user-data/t.txt"
    );
    EXPECT_EQ(outcome.out, "1000:1000\n");
    struct stat info{};
    ASSERT_EQ(::stat((bench.workspace() + "/t.txt").c_str(), &info), 0);
    EXPECT_EQ(info.st_uid, ::geteuid() == 0 ? fsmount::kGemUid : ::geteuid());
}

TEST_F(Containment, ReadOnlyHoldsForWhatIsMountedBelowABind) {
    const std::string workspace = bench.workspace();
    auto spec = [workspace]() -> base::Result<ScopeSpec> {
        ScopeSpec made = small_spec({}, Tier::namespaces, workspace);
        // The host's /dev carries /dev/shm and /dev/pts, which everyone may write.
        made.mounts.mounts.push_back(mount(fsmount::MountKind::directory, "/host-dev"));
        made.mounts.mounts.push_back(mount(fsmount::MountKind::bind, "/host-dev", "/dev"));
        return made;
    };
    const auto scope = bench.run(bench.sandbox().acquire({"alice", "dev", "default"}, spec));
    ASSERT_TRUE(scope) << scope.error().message;
    const Outcome outcome =
        bench.run((*scope)->run(shell("grep -q ' /host-dev/shm ' /proc/self/mountinfo && echo "
                                      "there; touch /host-dev/shm/ars-test; "
                                      "cat /host-dev/null")));
    EXPECT_EQ(outcome.out, "there\n");
    EXPECT_NE(outcome.err.find("Read-only file system"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("/host-dev/null: Permission denied"), std::string::npos) << "nodev";
}

TEST_F(Containment, HiddenThingsAreCoveredAndAbsentOnesAreNoError) {
    const std::string workspace = bench.workspace();
    auto spec = [workspace]() -> base::Result<ScopeSpec> {
        using enum fsmount::MountKind;
        ScopeSpec made = small_spec({}, Tier::namespaces, workspace);
        for (auto& m :
             {mount(hide_file, "/etc/passwd"),
              mount(hide_directory, "/usr/share"),
              mount(hide_file, "/etc/absent/file"),
              mount(hide_directory, "/absent")}) {
            made.mounts.mounts.push_back(m);
        }
        return made;
    };
    const auto scope = bench.run(bench.sandbox().acquire({"alice", "hide", "default"}, spec));
    ASSERT_TRUE(scope) << scope.error().message;
    const Outcome outcome =
        bench.run((*scope)->run(shell("wc -c </etc/passwd; ls -A /usr/share; touch /usr/share/x")));
    EXPECT_EQ(outcome.out, "0\n");
    EXPECT_NE(outcome.err.find("Read-only file system"), std::string::npos) << outcome.err;
}

TEST_F(Containment, OnlyLoopbackExistsAndItWorks) {
    EXPECT_EQ(bench.sh("tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '").out, "lo\n");
    const Outcome outside = bench.sh("exec 3<>/dev/tcp/192.0.2.1/80");
    EXPECT_NE(outside.err.find("Network is unreachable"), std::string::npos) << outside.err;
    const Outcome refused = bench.sh("exec 3<>/dev/tcp/127.0.0.1/9");
    EXPECT_NE(refused.err.find("Connection refused"), std::string::npos) << refused.err;
}

TEST_F(Containment, C35_LoopbackServerIsReachableInsideOnly) {
    if (bench.sh("command -v python3").shell_code() != 0) {
        GTEST_SKIP() << "no python3 in the image";
    }
    const Outcome outcome = bench.sh(
        "python3 -m http.server 8080 >/dev/null 2>&1 & for i in $(seq 100); do "
        "(exec 3<>/dev/tcp/127.0.0.1/8080) 2>/dev/null && { echo reached; break; }; sleep 0.1; done"
    );
    EXPECT_EQ(outcome.out, "reached\n");
}

TEST_F(Containment, C36_C38_PythonPoolsAndThreadsWork) {
    if (bench.sh("command -v python3").shell_code() != 0) {
        GTEST_SKIP() << "no python3 in the image";
    }
    EXPECT_EQ(
        bench
            .sh("python3 -c 'from concurrent.futures import ProcessPoolExecutor as P;"
                "print(list(P(2).map(abs,[-1])))'")
            .out,
        "[1]\n"
    );
    EXPECT_EQ(
        bench
            .sh("python3 -c 'import threading as "
                "t;x=t.Thread(target=lambda:print(1));x.start();x.join()'")
            .out,
        "1\n"
    );
    EXPECT_EQ(
        bench.sh("python3 -c 'import pty;pty.spawn([\"echo\",\"tty\"])' </dev/null").out, "tty\r\n"
    );  // C27
}

TEST_F(Containment, C42_OddSocketFamiliesAreRefusedAlsoWithHighBits) {
    const std::string socket = text(SYS_socket) + " ";
    for (const int family :
         {AF_VSOCK, AF_PACKET, AF_ALG, AF_BLUETOOTH, AF_KEY, 0, 45, 63, 64, 4096}) {
        EXPECT_EQ(raw_call(socket + text(family) + " 1 0"), kPermission) << family;
    }
    EXPECT_EQ(raw_call(socket + std::to_string(AF_VSOCK | kHighBit) + " 1 0"), kPermission);
    EXPECT_EQ(raw_call(socket + text(AF_NETLINK) + " 3 9"), kPermission) << "NETLINK_AUDIT";
    for (const int family : {AF_UNIX, AF_INET, AF_INET6}) {
        EXPECT_EQ(raw_call(socket + text(family) + " 1 0"), "3\n") << family;
    }
    EXPECT_EQ(raw_call(socket + text(AF_NETLINK) + " 3 0"), "3\n") << "NETLINK_ROUTE";
}

TEST_F(Containment, C56_NoEnvironmentOfOursIsReadable) {
    ::setenv("ARS_TEST_SECRET", "hunter2-in-the-server", 1);
    Bench fresh;  // its scope starts with the secret in the server's environment
    ASSERT_TRUE(fresh.acquire());
    const Outcome outcome = fresh.sh(
        "cat /proc/1/environ /proc/1/mem /proc/1/maps; ls /proc/1/fd /proc/$PPID/fd; "
        "for p in /proc/[0-9]*; do tr '\\0' '\\n' <$p/environ; done 2>/dev/null | grep -c "
        "'hunter2-in' "
    );
    ::unsetenv("ARS_TEST_SECRET");
    EXPECT_EQ(outcome.out, "0\n");
    EXPECT_NE(outcome.err.find("/proc/1/environ: Permission denied"), std::string::npos)
        << outcome.err;
}

TEST_F(Containment, C88_C89_EnvironmentIsExactlyWhatWasGiven) {
    ::setenv("OPENAI_API_KEY", "secret", 1);
    std::istringstream lines(bench.sh("env -u _ -u SHLVL -u PWD -u OLDPWD").out);
    ::unsetenv("OPENAI_API_KEY");
    std::map<std::string, std::string> seen;
    for (std::string line; std::getline(lines, line);) {
        seen[line.substr(0, line.find('='))] = line.substr(line.find('=') + 1);
    }
    EXPECT_EQ(seen, default_environment());
    EXPECT_EQ(seen["LANG"], "C.UTF-8");
    EXPECT_EQ(seen.count("OPENAI_API_KEY"), 0U);
}

TEST_F(Containment, LimitsAreThoseOfThePolicy) {
    EXPECT_EQ(
        bench.sh("ulimit -u; ulimit -n; ulimit -c; ulimit -f").out, "512\n4096\n0\n4194304\n"
    );
}

TEST_F(Containment, SetIdBitsAreRefusedWhereFilesKeepAnotherOwner) {
    const std::string workspace = bench.workspace();
    auto spec = [workspace]() -> base::Result<ScopeSpec> {
        ScopeSpec made = small_spec({}, Tier::namespaces, workspace);
        made.mounts.idmapped = true;
        return made;
    };
    const auto scope = bench.run(bench.sandbox().acquire({"alice", "idmapped", "default"}, spec));
    ASSERT_TRUE(scope) << scope.error().message;
    const Outcome outcome = bench.run((*scope)->run(shell(
        "cd /tmp; touch f; chmod 0755 f && echo plain; chmod u+s f || chmod g+s f || stat -c %a f"
    )));
    EXPECT_EQ(outcome.out, "plain\n755\n");
    EXPECT_EQ(bench.sh("cd /tmp; touch f; chmod u+s f; stat -c %a f").out, "4644\n")
        << "harmless elsewhere";
}

TEST_F(Containment, HostNetworkIsAPolicyOfItsOwn) {
    Bench host;
    host.policy().name = "host";
    host.policy().network = Network::host;
    host.policy().shared_network = SharedNetwork();
    ASSERT_TRUE(host.acquire());
    const auto links = [](Bench& in) { return in.sh("readlink /proc/self/ns/net").out; };
    char own[64] = {};
    ASSERT_GT(::readlink("/proc/self/ns/net", own, sizeof own - 1), 0);
    EXPECT_EQ(links(host), std::string(own) + "\n");
    EXPECT_NE(links(bench), std::string(own) + "\n");
}

}  // namespace
}  // namespace ars::sandbox::testing
