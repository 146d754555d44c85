// C15-C28: standard input, terminals, and state between the commands of one scope.
#include "tests/cases/fixture.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

namespace ars::tests {
namespace {

class SessionCases : public Cases {};

TEST_P(SessionCases, C15_StdinIsAtItsEndUnlessGiven) {
    EXPECT_TRUE(exited(run("cat"), 0));
    EXPECT_EQ(text(run("cat", {{"stdin", "given"}}), "stdout"), "given");
    ARS_NEEDS("python3");
    EXPECT_TRUE(exited(session().run(std::vector<std::string>{"python3"}), 0));
}

TEST_P(SessionCases, C16_StrictShellOptionsEndTheirOwnCommandOnly) {
    EXPECT_TRUE(exited(run("set -euo pipefail; false; echo never"), 1));
    const json::object next = run("echo alive");
    EXPECT_TRUE(exited(next, 0));
    EXPECT_EQ(text(next, "stdout"), "alive\n");
}

TEST_P(SessionCases, C17_ExitReturnsPromptlyWithItsCode) {
    const std::string mark = marker();
    const json::object three = run("sleep " + mark + " & exit 3");
    EXPECT_TRUE(exited(three, 3));
    EXPECT_LT(number(three, "duration_ms"), 5000);
    const json::object zero = run("echo x; exit 0");
    EXPECT_TRUE(exited(zero, 0));
    EXPECT_EQ(text(zero, "stdout"), "x\n");
    EXPECT_EQ(text(run("echo next"), "stdout"), "next\n");
    session().close();
    EXPECT_EQ(survivors(mark), 0);
}

TEST_P(SessionCases, C18_HereDocumentIsWritten) {
    EXPECT_TRUE(exited(run("cat <<'EOF' >t.txt\nhello\nEOF"), 0));
    EXPECT_EQ(read_text(workspace().path() + "/t.txt"), "hello\n");
}

TEST_P(SessionCases, C20_TemporaryDirectoryVariablesAllNameAWritablePlace) {
    const json::object done =
        run("for d in $TMPDIR $TMP $TEMP $(dirname $TMPPREFIX); do test -w $d && echo yes; done; "
            "bash -c $'cat <<E\\nx\\nE'");
    EXPECT_EQ(text(done, "stdout"), "yes\nyes\nyes\nyes\nx\n") << json::serialize(done);
    ARS_NEEDS("zsh");
    EXPECT_EQ(text(run("zsh -c $'cat <<E\\nx\\nE'"), "stdout"), "x\n");
}

TEST_P(SessionCases, C25_ThereIsNoControllingTerminalAndNothingWaitsForAPerson) {
    const json::object done = run("read x </dev/tty", {{"timeout", "15s"}});
    EXPECT_TRUE(exited(done, 1));
    EXPECT_TRUE(holds(done, "stderr", "No such device or address")) << json::serialize(done);
    EXPECT_EQ(
        text(run("echo $GIT_TERMINAL_PROMPT $DEBIAN_FRONTEND"), "stdout"), "0 noninteractive\n"
    );
    ARS_NEEDS("ssh");
    EXPECT_NE(
        text(run("ssh -o BatchMode=no localhost", {{"timeout", "15s"}}), "status"), "timed_out"
    );
}

TEST_P(SessionCases, C27_ProgramsCanOpenTerminalsOfTheirOwn) {
    ARS_NEEDS_TERMINALS();
    ARS_NEEDS("python3");
    EXPECT_TRUE(exited(
        python("import pty,os\nraise SystemExit(os.waitstatus_to_exitcode(pty.spawn(['true'])))"), 0
    ));
    ARS_NEEDS("script");
    EXPECT_TRUE(exited(run("script -qec true /dev/null"), 0));
}

ARS_INSTANTIATE_CASES(SessionCases);

}  // namespace
}  // namespace ars::tests
