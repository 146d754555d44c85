// C01-C14: how commands and what they start come to an end.
#include "tests/cases/fixture.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <filesystem>
#include <fstream>
#include <thread>

namespace ars::tests {
namespace {

using namespace std::chrono_literals;

class ProcessCases : public Cases {};

TEST_P(ProcessCases, C01_BackgroundChildDoesNotHoldTheCallAndIsListed) {
    const std::string mark = marker();
    const json::object done = run("sleep " + mark + " & echo done");
    EXPECT_TRUE(exited(done, 0));
    EXPECT_EQ(text(done, "stdout"), "done\n");
    EXPECT_LT(number(done, "duration_ms"), 5000);
    ASSERT_EQ(done.at("background").as_array().size(), 1U) << json::serialize(done);
    EXPECT_TRUE(holds(done.at("background").as_array()[0].as_object(), "command", "sleep " + mark));
    EXPECT_EQ(text(run("echo next"), "stdout"), "next\n");
    EXPECT_EQ(session().close(), 0);
    EXPECT_EQ(survivors(mark), 0);
}

TEST_P(ProcessCases, C03_TimeoutEndsTheWholeTreeAndKeepsTheOutput) {
    const std::string mark = marker();
    const json::object done =
        run("mkfifo p; (while :; do echo c; sleep 0.1; done) >p & cat p; : " + mark,
            {{"timeout", "700ms"}});
    EXPECT_TRUE(has_status(done, "timed_out"));
    EXPECT_TRUE(text(done, "stdout").starts_with("c\n")) << json::serialize(done);
    EXPECT_EQ(survivors(mark), 0);
}

TEST_P(ProcessCases, C04_TreeThatIgnoresTermIsKilledAfterTheGrace) {
    const std::string mark = marker();
    const json::object done =
        run("trap '' TERM HUP INT; while :; do sleep 0.2; done; : " + mark, {{"timeout", "300ms"}});
    EXPECT_TRUE(has_status(done, "timed_out"));
    // Time limit, two seconds of grace, and room for a busy machine.
    EXPECT_LT(number(done, "duration_ms"), 300 + 2000 + 4000);
    EXPECT_EQ(survivors(mark), 0);
}

TEST_P(ProcessCases, C05_ServerOfATimedOutCommandGivesItsPortBack) {
    ARS_NEEDS("python3");
    // In the landlock tier it ends by itself: no sockets but AF_UNIX without a network namespace.
    const json::object done =
        run("python3 -m http.server 8123 --bind 127.0.0.1 & wait",
            {{"timeout", landlock() ? "30s" : "1500ms"}});
    if (landlock()) {
        EXPECT_TRUE(holds(done, "stderr", "Error")) << json::serialize(done);
    } else {
        EXPECT_TRUE(has_status(done, "timed_out"));
        const json::object look = python(
            "import socket\n"
            "try: socket.create_connection(('127.0.0.1', 8123), 2); print('open')\n"
            "except ConnectionRefusedError: print('closed')"
        );
        EXPECT_EQ(text(look, "stdout"), "closed\n") << json::serialize(look);
    }
    EXPECT_EQ(survivors("http.server 8123"), 0);
}

TEST_P(ProcessCases, C06_DaemonThatHoldsStdoutDoesNotHoldTheCall) {
    ARS_NEEDS("python3");
    const std::string mark = marker();
    const json::object done =
        python("import subprocess;subprocess.Popen(['sleep','" + mark + "']);print('x')");
    EXPECT_TRUE(exited(done, 0));
    EXPECT_EQ(text(done, "stdout"), "x\n");
    EXPECT_LT(number(done, "duration_ms"), 10000);
    session().close();
    EXPECT_EQ(survivors(mark), 0);
}

TEST_P(ProcessCases, C07_OrphansAreReaped) {
    // By name, so that the count is true where /proc is not the scope's own. A zombie's name is in
    // parentheses.
    const std::string name = "z" + marker().substr(0, 12);
    const json::object done =
        run("cp \"$(command -v sleep)\" ./" + name + "; for i in $(seq 200); do (./" + name +
            " 0.05 &) ; done; sleep 0.6; cat /proc/[0-9]*/stat 2>/dev/null | grep -c '(" + name +
            ") Z'");
    EXPECT_EQ(text(done, "stdout"), "0\n") << json::serialize(done);
}

TEST_P(ProcessCases, C08_ForkBombIsBoundedSaidAndEnded) {
    const std::string mark = marker();
    // The shell itself waits without forking until the bomb hit the limit, and says what it was
    // told.
    const json::object done =
        run("mkfifo never; exec 9<>never; bomb() { bomb | bomb & }; bomb 2>err; "
            "while [ ! -s err ]; do read -t 0.1 -u 9; done; read -r why <err; echo \"$why\"; exit "
            "7; : " +
                mark,
            {{"timeout", "30s"}});
    EXPECT_TRUE(exited(done, 7));
    EXPECT_TRUE(holds(done, "stdout", "Resource temporarily unavailable")) << json::serialize(done);
    EXPECT_EQ(session().close(), 0);
    EXPECT_EQ(survivors(mark), 0);
}

// Other containers of the host count too where they share the uid, and /proc does not show them.
TEST_P(ProcessCases, C09_ProcessesOutOfSightDoNotStarveAScope) {
    ARS_NEEDS_ROOT();
    ARS_NEEDS_MOUNTS();
    ARS_NEEDS("python3");
    Process others(
        {"setpriv",
         "--reuid",
         "1000",
         "--clear-groups",
         "python3",
         "-c",
         "import threading, time\n"
         "threading.stack_size(65536)\n"
         "for i in range(700): threading.Thread(target=time.sleep, args=(600,)).start()\n"
         "print('there', flush=True)\n"}
    );
    for (int i = 0; i < 500 && others.running() && others.out().empty(); ++i) {
        std::this_thread::sleep_for(20ms);
    }
    ASSERT_EQ(others.out(), "there\n") << others.err();
    options_.wrapper = {"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"};
    EXPECT_TRUE(exited(run("true | cat; ! ps -A -o args= | grep -q '[r]ange(700)'"), 0));
}

TEST_P(ProcessCases, C09_OneFullScopeDoesNotStarveAnother) {
    ARS_NEEDS("python3");
    const json::object full = python(
        "import os, time\n"
        "n = 0\n"
        "try:\n"
        "    while n < 20000:\n"
        "        if os.fork() == 0: time.sleep(20); os._exit(0)\n"
        "        n += 1\n"
        "except BlockingIOError: print('full', flush=True)\n"
        "os._exit(0)",
        {{"timeout", "20s"}}
    );
    EXPECT_EQ(text(full, "stdout"), "full\n") << json::serialize(full);
    const Workspace second(landlock());
    const SessionOptions options = second.options();
    const json::object other = exec_json(GetParam(), {"true"}, options);
    // Without a user namespace the count is per uid: a clear refusal with its cause is right there
    // too.
    if (!landlock() || text(other, "status") == "exited") {
        EXPECT_TRUE(exited(other, 0));
    } else {
        EXPECT_TRUE(holds(other, "detail", "Resource temporarily unavailable"))
            << json::serialize(other);
    }
}

TEST_P(ProcessCases, C11_SignalStateIsCleanAndAPipeEndsQuietly) {
    const json::object done =
        run("yes | head -1; echo ${PIPESTATUS[0]}; grep -E '^Sig(Blk|Ign)' /proc/self/status | tr "
            "-s '\\t' ' '");
    EXPECT_EQ(text(done, "stdout"), "y\n141\nSigBlk: 0000000000000000\nSigIgn: 0000000000000000\n");
    EXPECT_EQ(text(done, "stderr"), "");
}

TEST_P(ProcessCases, C12_IgnoredSigchldOfTheCallerChangesNothing) {
    options_.wrapper = {"env", "--ignore-signal=CHLD"};
    EXPECT_TRUE(exited(run("true"), 0));
    EXPECT_TRUE(exited(run("true & wait $!; (exit 3)"), 3));
}

TEST_P(ProcessCases, C13_HundredPipelinesOfDashDoNotHang) {
    ARS_NEEDS("dash");
    const json::object done = session().run(std::vector<std::string>{
        "dash", "-c", "i=0; while [ $i -lt 100 ]; do seq 10|cat|wc -l; i=$((i+1)); done"
    });
    EXPECT_TRUE(exited(done, 0));
    std::string expected;
    for (int i = 0; i < 100; ++i) {
        expected += "10\n";
    }
    EXPECT_EQ(text(done, "stdout"), expected);
    EXPECT_EQ(text(done, "stderr"), "");
}

TEST_P(ProcessCases, C14_FloodIsBoundedToHeadAndTail) {
    const json::object done =
        run("while :; do echo 'Please enter some text.'; done", {{"timeout", "700ms"}});
    EXPECT_TRUE(has_status(done, "timed_out"));
    EXPECT_LE(text(done, "stdout").size(), 300U * 1024U);
    EXPECT_TRUE(text(done, "stdout").starts_with("Please enter some text.\n"));
    EXPECT_GT(number(done, "omitted_bytes"), 0);
    std::ifstream status("/proc/" + std::to_string(session().pid()) + "/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("VmHWM:")) {
            EXPECT_LT(std::stol(line.substr(6)), 256 * 1024) << line;
        }
    }
}

ARS_INSTANTIATE_CASES(ProcessCases);

}  // namespace
}  // namespace ars::tests
