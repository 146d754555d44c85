// C30-C33: what a command prints arrives, whatever the bytes are and however the command ends.
#include "tests/cases/fixture.hpp"

#include <boost/json/serialize.hpp>

namespace ars::tests {
namespace {

class OutputCases : public Cases {};

TEST_P(OutputCases, C30_InvalidUtf8IsReplacedAndSaid) {
    const json::object done = run("printf 'a\\xff\\xf0\\x00b\\n'; head -c 100000 /dev/urandom");
    EXPECT_TRUE(exited(done, 0));  // the answer was JSON, or ask() would have thrown
    EXPECT_TRUE(text(done, "stdout").starts_with("a\xef\xbf\xbd"))
        << text(done, "stdout").substr(0, 20);
    EXPECT_TRUE(done.contains("lossy") && done.at("lossy").as_bool())
        << json::serialize(done).substr(0, 200);
    const json::object clean = run("echo fine");
    EXPECT_FALSE(clean.contains("lossy"));
}

TEST_P(OutputCases, C32_TimeoutKeepsWhatBothStreamsSaid) {
    const json::object done = run("echo line1; echo e1 >&2; sleep 30", {{"timeout", "500ms"}});
    EXPECT_TRUE(has_status(done, "timed_out"));
    EXPECT_EQ(text(done, "stdout"), "line1\n");
    EXPECT_EQ(text(done, "stderr"), "e1\n");
}

TEST_P(OutputCases, C33_PythonDoesNotHoldItsOutputBack) {
    ARS_NEEDS("python3");
    const json::object done =
        python("import time;print('x');time.sleep(30)", {{"timeout", "1500ms"}});
    EXPECT_TRUE(has_status(done, "timed_out"));
    EXPECT_EQ(text(done, "stdout"), "x\n");
}

ARS_INSTANTIATE_CASES(OutputCases);

}  // namespace
}  // namespace ars::tests
