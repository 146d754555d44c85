// C35-C50: what language runtimes and their helpers need from the kernel, and what they do not get.
#include "tests/cases/fixture.hpp"

#include <boost/json/serialize.hpp>

#include <array>

#include <sys/syscall.h>
#include <unistd.h>

namespace ars::tests {
namespace {

class RuntimeCases : public Cases {
  protected:
    // The kernel's answer to one raw call from inside; 64-bit arguments exactly as given.
    std::string raw(const std::string& arguments) {
        return text(run("./raw_call " + arguments), "stdout");
    }
};

TEST_P(RuntimeCases, C35_LoopbackServerWorksInside) {
    ARS_NEEDS("python3");
    ARS_NEEDS("curl");
    const json::object done = run(
        std::string("echo hello >f; python3 -m http.server 8080 --bind 127.0.0.1 >/dev/null 2>&1 & "
        ) + "for i in $(seq " +
            std::string(landlock() ? "3" : "100") +
            "); do curl -s 127.0.0.1:8080/f && break; sleep 0.1; done; kill %1",
        {{"timeout", "30s"}}
    );
    // Without a network namespace there is no socket but AF_UNIX, loopback included.
    EXPECT_EQ(text(done, "stdout"), landlock() ? "" : "hello\n") << json::serialize(done);
}

TEST_P(RuntimeCases, C36_SemaphoresOfAProcessPoolWork) {
    ARS_NEEDS("python3");
    const json::object done = python(
        "from concurrent.futures import ProcessPoolExecutor as P\nprint(list(P(2).map(abs,[-1])))"
    );
    EXPECT_EQ(text(done, "stdout"), "[1]\n") << json::serialize(done);
}

TEST_P(RuntimeCases, C37_IoUringIsAbsentNotDeadly) {
    workspace_with({"raw_call"});
    const std::string answer = raw(std::to_string(SYS_io_uring_setup) + " 8 0");
    EXPECT_TRUE(answer == "-38\n" || answer == "-1\n") << answer;
    ARS_NEEDS("node");
    EXPECT_EQ(text(run("node -e 'console.log(1)'"), "stdout"), "1\n");
}

TEST_P(RuntimeCases, C38_ThreadsStart) {
    ARS_NEEDS("python3");
    EXPECT_EQ(
        text(
            python("import threading as t\nx=t.Thread(target=print)\nx.start()\nx.join()"), "stdout"
        ),
        "\n"
    );
    workspace_with({"raw_call"});
    EXPECT_EQ(raw(std::to_string(SYS_clone3) + " 0 0"), "-38\n");
}

TEST_P(RuntimeCases, C38_ResolverThreadOfCurlStarts) {
    ARS_NEEDS("curl");
    const json::object done = run("curl -sS http://localhost:9/; echo $?");
    EXPECT_EQ(text(done, "stdout"), "7\n") << json::serialize(done);
}

TEST_P(RuntimeCases, C39_CloseRangeIsThere) {
    workspace_with({"raw_call"});
    const std::string answer = raw(std::to_string(SYS_close_range) + " 1000 1001 0");
    EXPECT_TRUE(answer == "0\n" || answer == "-38\n") << answer;
}

#if defined(__x86_64__)
TEST_P(RuntimeCases, C40_OtherCallTablesAreNotServed) {
    workspace_with({"raw_call"});
    const std::string x32 = raw(std::to_string(0x40000000 + SYS_ptrace) + " 0 0 0 0");
    EXPECT_TRUE(x32 == "-38\n" || x32 == "-1\n") << x32;
    const json::object i386 = run("./raw_call i386 20");  // getpid, if it were served
    EXPECT_TRUE(
        text(i386, "stdout") == "-38\n" || text(i386, "stdout") == "-1\n" ||
        text(i386, "status") == "signalled"
    ) << json::serialize(i386);
}
#endif

TEST_P(RuntimeCases, C42_HighBitsOfAnArgumentDoNotChangeTheVerdict) {
    workspace_with({"raw_call"});
    EXPECT_EQ(raw(std::to_string(SYS_socket) + " 40 1 0"), "-1\n");
    EXPECT_EQ(raw(std::to_string(SYS_socket) + " 0x100000028 1 0"), "-1\n");
    EXPECT_EQ(raw(std::to_string(SYS_clone) + " 0x10000011 0"), "-1\n");
    EXPECT_EQ(raw(std::to_string(SYS_clone) + " 0x100000010000011 0"), "-1\n");
    EXPECT_EQ(raw(std::to_string(SYS_unshare) + " 0x110000000"), "-1\n");
}

TEST_P(RuntimeCases, C43_NoKeyRingCarriesDataOn) {
    workspace_with({"raw_call"});
    for (const long call : std::array<long, 3>{SYS_add_key, SYS_request_key, SYS_keyctl}) {
        const std::string answer = raw(std::to_string(call) + " 0 0 0 0 0");
        EXPECT_TRUE(answer == "-1\n" || answer == "-38\n") << call << ": " << answer;
    }
    ARS_NEEDS("keyctl");
    EXPECT_FALSE(exited(run("keyctl add user k v @u"), 0));
    EXPECT_FALSE(holds(run("keyctl show @u"), "stdout", " user: k"));
}

TEST_P(RuntimeCases, C44_DebuggersFailFast) {
    workspace_with({"raw_call"});
    EXPECT_EQ(raw(std::to_string(SYS_ptrace) + " 0 0 0 0"), "-1\n");
    for (const auto& [program, command] : std::array<std::pair<const char*, const char*>, 2>{
             {{"strace", "strace -f true"}, {"gdb", "gdb -batch -ex run /bin/true"}}
         }) {
        if (has_program(program)) {
            const json::object done = run(command, {{"timeout", "15s"}});
            EXPECT_NE(text(done, "status"), "timed_out") << command << json::serialize(done);
        }
    }
}

TEST_P(RuntimeCases, C44_DebugPolicyTracesItsOwnChildren) {
    ARS_NEEDS("strace");
    options_.flags = {"--policy", "debug"};
    const json::object done =
        run("strace -f -o trace true && grep -c execve trace", {{"timeout", "15s"}});
    EXPECT_TRUE(exited(done, 0));
}

TEST_P(RuntimeCases, C45_NestedUserNamespaceIsRefusedByName) {
    const json::object done = run("unshare -Ur id");
    EXPECT_NE(number(done, "exit_code"), 0);
    EXPECT_TRUE(holds(done, "stderr", "Operation not permitted")) << json::serialize(done);
    // An engine's filter that refuses the call itself goes before ours, and tells nobody.
    if (probe(doctor(), "user_namespace").at("works").as_bool()) {
        EXPECT_TRUE(has_status(done, "violation"));
        EXPECT_TRUE(holds(done, "detail", "unshare")) << json::serialize(done);
    }
}

TEST_P(RuntimeCases, C46_SetUidProgramsFailCleanlyAndDoNotAsk) {
    EXPECT_EQ(text(run("grep NoNewPrivs /proc/self/status | cut -f2"), "stdout"), "1\n");
    const json::object su = run("su -c id; mount -t tmpfs none .", {{"timeout", "15s"}});
    EXPECT_NE(text(su, "status"), "timed_out");
    EXPECT_FALSE(exited(su, 0));
    ARS_NEEDS("sudo");
    const json::object sudo = run("sudo -n id", {{"timeout", "15s"}});
    EXPECT_TRUE(holds(sudo, "stderr", "no new privileges")) << json::serialize(sudo);
}

TEST_P(RuntimeCases, C47_ArchiveOfRootsFilesUnpacksAsGem) {
    const json::object done =
        run("mkdir in; echo x >in/f; tar cf a.tar --owner=0 --group=0 in && rm -r in && tar xf "
            "a.tar && "
            "stat -c '%u %g' in/f; chown 0:4 in/f");
    EXPECT_EQ(text(done, "stdout"), "1000 1000\n") << json::serialize(done);
    EXPECT_TRUE(
        holds(done, "stderr", "Operation not permitted") ||
        holds(done, "stderr", "Invalid argument")
    ) << json::serialize(done);
    EXPECT_FALSE(exited(done, 0));
}

TEST_P(RuntimeCases, C48_ProgramInMemoryRunsWithinTheSameWalls) {
    ARS_NEEDS("python3");
    workspace_with({"raw_call"});
    const json::object done = python(
        "import os\nf=os.memfd_create('x')\nos.write(f,open('raw_call','rb').read())\n"
        "os.execv(f'/proc/self/fd/{f}',['x','" +
        std::to_string(SYS_unshare) + "','0x10000000'])"
    );
    EXPECT_EQ(text(done, "stdout"), "-1\n") << json::serialize(done);
}

TEST_P(RuntimeCases, C50_AddressSpaceIsNotTheMemoryLimit) {
    EXPECT_EQ(text(run("ulimit -v"), "stdout"), "unlimited\n");
    ARS_NEEDS("node");
    const json::object done =
        run("node -e \"fetch('http://127.0.0.1:9').catch(()=>console.log('ok'))\"");
    EXPECT_EQ(text(done, "stdout"), "ok\n") << json::serialize(done);
}

ARS_INSTANTIATE_CASES(RuntimeCases);

}  // namespace
}  // namespace ars::tests
