// C10, C21-C24, C26, C28, C30, C31, C83: commands that go on, are polled, fed and ended by id.
#include "tests/cases/fixture.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

namespace ars::tests {
namespace {

class BackgroundCases : public Cases {
  protected:
    json::object poll(const std::string& id, std::int64_t offset, const std::string& wait = "30s") {
        return session().ask({{"poll", id}, {"offset", offset}, {"wait", wait}});
    }
    json::object kill(const std::string& id) { return session().ask({{"kill", id}}); }
    json::object list() { return session().ask({{"list", true}}); }
    // In a terminal, to its end.
    json::object in_terminal(const std::string& script) {
        return run(script, {{"terminal", {{"rows", 30}, {"columns", 100}}}, {"timeout", "20s"}});
    }
};

TEST_P(BackgroundCases, C10_KillReturnsWhenTheProcessIsGone) {
    const std::string mark = marker();
    const json::object started = run("sleep " + mark, {{"wait", "0s"}});
    ASSERT_TRUE(has_status(started, "running"));
    const std::string id = text(started, "id");
    EXPECT_EQ(list().at("commands").as_array().size(), 1U);
    EXPECT_TRUE(has_status(kill(id), "cancelled"));
    EXPECT_EQ(processes_with(mark), 0) << "not a moment later";
    EXPECT_TRUE(has_status(kill(id), "cancelled")) << "a second time";
    EXPECT_TRUE(has_status(kill("77"), "not_found"));
    const json::object after = list();
    EXPECT_EQ(text(after.at("commands").as_array().at(0).as_object(), "status"), "cancelled");
    EXPECT_TRUE(after.at("background").as_array().empty());
}

TEST_P(BackgroundCases, C21_SoftWaitSendsNothingToTheProcess) {
    const json::object started =
        run("trap 'echo signalled' TERM INT HUP; sleep 3; echo ok",
            {{"wait", "1s"}, {"timeout", "60s"}});
    ASSERT_TRUE(has_status(started, "running"));
    EXPECT_EQ(text(started, "stdout"), "");
    const json::object done = poll(text(started, "id"), number(started, "next_offset"));
    EXPECT_TRUE(exited(done, 0));
    EXPECT_EQ(text(done, "output"), "ok\n");
    const json::object quick = run("echo now", {{"wait", "20s"}});
    EXPECT_TRUE(exited(quick, 0)) << "over before the soft wait";
    EXPECT_EQ(text(quick, "stdout"), "now\n");
}

TEST_P(BackgroundCases, C22_TwelveAtOnceKeepTheirOwnOutputsAndCodes) {
    std::vector<std::string> ids;
    for (int i = 0; i < 12; ++i) {
        const std::string n = std::to_string(i);
        const json::object started =
            run("sleep 0.2; echo $RANDOM-" + n + "; exit " + n, {{"wait", "0s"}});
        ids.push_back(text(started, "id"));
    }
    for (int i = 0; i < 12; ++i) {
        const json::object done = poll(ids[static_cast<std::size_t>(i)], 0);
        EXPECT_TRUE(exited(done, i));
        EXPECT_TRUE(text(done, "output").ends_with("-" + std::to_string(i) + "\n"))
            << json::serialize(done);
    }
}

TEST_P(BackgroundCases, C23_UnknownIdIsNotFoundAndARunningOneIsKept) {
    EXPECT_TRUE(has_status(poll("1", 0, "0s"), "not_found"));
    const std::string id = text(run("sleep 1; echo kept", {{"wait", "0s"}}), "id");
    for (int i = 0; i < 5; ++i) {
        EXPECT_TRUE(exited(run("true"), 0));
    }
    EXPECT_EQ(text(poll(id, 0), "output"), "kept\n");
    EXPECT_EQ(text(poll(id, 0), "output"), "kept\n") << "asked for again";
    EXPECT_TRUE(has_status(session().ask({{"input", "9"}, {"data", "x"}}), "not_found"));
}

TEST_P(BackgroundCases, C24_OutputIsReadFromAnOffsetWhileItGoesOn) {
    const json::object started =
        run("for i in 1 2 3 4 5 6 7 8; do echo line$i; sleep 0.1; done", {{"wait", "200ms"}});
    const std::string id = text(started, "id");
    std::string seen = text(started, "stdout");
    json::object last = started;
    for (int i = 0; i < 200 && text(last, "status") == "running"; ++i) {
        last = poll(id, number(last, "next_offset"), "100ms");
        seen += text(last, "output");
    }
    EXPECT_TRUE(exited(last, 0));
    EXPECT_EQ(seen, "line1\nline2\nline3\nline4\nline5\nline6\nline7\nline8\n");
    EXPECT_EQ(text(poll(id, 6, "0s"), "output").substr(0, 6), "line2\n");
}

TEST_P(BackgroundCases, InputIsWrittenAndClosed) {
    const json::object started =
        run("while read -r x; do echo \"got $x\"; done; echo end",
            {{"wait", "0s"}, {"stdin", "a\n"}, {"stdin_open", true}});
    const std::string id = text(started, "id");
    EXPECT_TRUE(has_status(session().ask({{"input", id}, {"data", "b\n"}}), "ok"));
    EXPECT_TRUE(has_status(session().ask({{"input", id}, {"close", true}}), "ok"));
    const json::object done = poll(id, 0);
    EXPECT_TRUE(exited(done, 0));
    EXPECT_EQ(text(done, "output"), "got a\ngot b\nend\n");
    EXPECT_TRUE(has_status(session().ask({{"input", id}, {"data", "c\n"}}), "input_closed"));
}

TEST_P(BackgroundCases, C26_TerminalsModesCanBeSet) {
    ARS_NEEDS_TERMINALS();
    const json::object done = in_terminal(
        "stty size; stty raw -echo && stty sane && echo modes; [ -t 0 ] && [ -t 1 ] && echo tty; "
        "echo hello > /dev/tty; echo $TERM"
    );
    EXPECT_TRUE(exited(done, 0));
    EXPECT_EQ(text(done, "stdout"), "30 100\r\nmodes\r\ntty\r\nhello\r\nxterm\r\n")
        << json::serialize(done);
    ARS_NEEDS("node");
    EXPECT_TRUE(exited(in_terminal("node -e 'process.stdin.setRawMode(true);process.exit(0)'"), 0));
}

TEST_P(BackgroundCases, TerminalThatTheHostRefusesIsSaidWithTheRemedy) {
    if (!landlock() || terminals_for_gem()) {
        EXPECT_TRUE(exited(in_terminal("test -t 0"), 0));
        return;
    }
    const json::object done = in_terminal("echo ran");
    EXPECT_TRUE(has_status(done, "setup_failed"));
    EXPECT_TRUE(holds(done, "detail", "ptmxmode=0666")) << json::serialize(done);
    EXPECT_TRUE(exited(run("true"), 0)) << "the sandbox goes on";
}

TEST_P(BackgroundCases, TerminalIsTypedIntoAndResized) {
    ARS_NEEDS_TERMINALS();
    const json::object started =
        run("trap 'stty size' WINCH; stty -echo; echo ready; "
            "until read -r x; do :; done; echo \"read $x\"",
            {{"wait", "0s"}, {"terminal", json::object{}}});
    const std::string id = text(started, "id");
    json::object so_far;
    const auto wait_for = [&](const std::string& wanted) {
        for (int i = 0; i < 200 && !holds(so_far, "output", wanted); ++i) {
            so_far = poll(id, 0, "50ms");
        }
        return holds(so_far, "output", wanted);
    };
    EXPECT_TRUE(wait_for("ready"));
    const json::object resized = session().ask({{"resize", id}, {"rows", 50}, {"columns", 132}});
    EXPECT_TRUE(has_status(resized, "ok"));
    // bash runs the trap when the read of this line returns.
    EXPECT_TRUE(has_status(session().ask({{"input", id}, {"data", "typed\n"}}), "ok"));
    const json::object done = poll(id, 0);
    EXPECT_TRUE(exited(done, 0));
    EXPECT_TRUE(holds(done, "output", "50 132\r\n")) << json::serialize(done);
    EXPECT_TRUE(holds(done, "output", "read typed\r\n")) << json::serialize(done);
}

TEST_P(BackgroundCases, C28_NothingCanBeTypedIntoATerminalFromInside) {
    ARS_NEEDS_TERMINALS();
    ARS_NEEDS("python3");
    const json::object done = in_terminal(
        "stty -echo; python3 -c '\n"
        "import fcntl, termios, ctypes, os\n"
        "try:\n"
        "    fcntl.ioctl(0, termios.TIOCSTI, b\"i\"); print(\"typed\")\n"
        "except OSError as e: print(e.errno)\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "b = ctypes.create_string_buffer(b\"i\")\n"
        "ioctl = 16 if os.uname().machine == \"x86_64\" else 29\n"
        "for request in (termios.TIOCSTI, 0x541C):\n"
        "    r = libc.syscall(ctypes.c_long(ioctl), 0, ctypes.c_ulong(request | 1 << 32), b)\n"
        "    print(r, ctypes.get_errno())\n"
        "'; read -t 0.2 x; echo \"[$x]\""
    );
    EXPECT_EQ(text(done, "stdout"), "1\r\n-1 1\r\n-1 1\r\n[]\r\n") << json::serialize(done);
}

TEST_P(BackgroundCases, C30_C31_RawOutputKeepsEveryByte) {
    const json::object done =
        run("printf 'a\\xff\\xf0\\x00b\\n'; printf 'e\\0' >&2", {{"raw", true}});
    EXPECT_TRUE(exited(done, 0));
    EXPECT_EQ(bytes(done, "stdout_base64"), std::string("a\xff\xf0\0b\n", 6));
    EXPECT_EQ(bytes(done, "stderr_base64"), std::string("e\0", 2));
    EXPECT_FALSE(done.contains("stdout"));
    const json::object names =
        run("mkdir d; touch d/x d/y; cd d; find . -maxdepth 1 -type f -printf '%f\\0' | sort -z",
            {{"raw", true}});
    EXPECT_EQ(bytes(names, "stdout_base64"), std::string("x\0y\0", 4));
    const json::object polled =
        poll(text(run("printf 'p\\0\\xff'; sleep 0.2", {{"raw", true}, {"wait", "0s"}}), "id"), 0);
    EXPECT_EQ(bytes(polled, "output_base64"), std::string("p\0\xff", 3));
}

TEST_P(BackgroundCases, C83_DeletedLogThatGrowsIsStoppedOrListedAndEnded) {
    const json::object limited =
        run("(while :; do echo xxxxxxxx; done >l) & rm -f l; wait $!",
            {{"limits", {{"file_size", "1MiB"}}}, {"timeout", "60s"}});
    EXPECT_TRUE(exited(limited, 128 + 25));
    EXPECT_TRUE(holds(limited, "detail", "file size limit of 1048576 bytes"))
        << json::serialize(limited);
    const std::string mark = marker();
    const json::object left =
        run("sh -c 'while :; do echo xxxxxxxx; done >l; : " + mark + "' & sleep 0.1; rm -f l",
            {{"wait", "20s"}});
    EXPECT_TRUE(exited(left, 0));
    ASSERT_EQ(list().at("background").as_array().size(), 1U) << json::serialize(left);
    kill(text(left, "id"));
    EXPECT_TRUE(list().at("background").as_array().empty());
    EXPECT_EQ(processes_with(mark), 0);
}

TEST_P(BackgroundCases, LimitsOfACommandAreItsOwn) {
    const json::object limits{
        {"cpu", "7s"}, {"file_size", "2KiB"}, {"open_files", 64}, {"processes", 16}
    };
    const std::string ask = "ulimit -t; ulimit -f; ulimit -n";
    EXPECT_EQ(text(run(ask, {{"limits", limits}}), "stdout"), "7\n2\n64\n");
    const json::object spun = run("while :; do :; done", {{"limits", {{"cpu", "1s"}}}});
    EXPECT_TRUE(has_status(spun, "signalled"));
    EXPECT_EQ(text(spun, "detail"), "cpu time limit of 1 s");
}

TEST_P(BackgroundCases, C88_EnvironmentOfACommandIsAddedAndNotInAnArgumentList) {
    const std::string mark = marker();
    const json::object done =
        run("echo $EXTRA $USER; tr '\\0' ' ' </proc/self/cmdline", {{"env", {{"EXTRA", mark}}}});
    EXPECT_EQ(text(done, "stdout"), mark + " gem\ntr \\0   ");
    EXPECT_EQ(text(run("echo [$EXTRA]"), "stdout"), "[]\n");
    EXPECT_TRUE(has_status(run("true", {{"env", {{"A=B", "x"}}}}), "setup_failed"));
}

ARS_INSTANTIATE_CASES(BackgroundCases);

}  // namespace
}  // namespace ars::tests
