#include "sandbox/outcome.hpp"

#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <cerrno>

namespace ars::sandbox {
namespace {

TEST(Outcome, HasTheCodeAShellWouldGive) {
    Outcome outcome;
    EXPECT_EQ(outcome.shell_code(), 125);
    outcome.setup_errno = ENOENT;
    EXPECT_EQ(outcome.shell_code(), 127);
    outcome.setup_errno = EACCES;
    EXPECT_EQ(outcome.shell_code(), 126);
    outcome.status = OutcomeStatus::exited;
    outcome.exit_code = 3;
    EXPECT_EQ(outcome.shell_code(), 3);
    outcome.status = OutcomeStatus::signalled;
    outcome.signal = 9;
    EXPECT_EQ(outcome.shell_code(), 137);
    outcome.status = OutcomeStatus::timed_out;
    EXPECT_EQ(outcome.shell_code(), 124);
}

TEST(Outcome, JsonLeavesOutWhatDoesNotApply) {
    Outcome outcome;
    outcome.status = OutcomeStatus::exited;
    outcome.out = "hi\n";
    outcome.duration = base::milliseconds(4);
    EXPECT_EQ(
        boost::json::serialize(outcome.to_json()),
        R"({"status":"exited","exit_code":0,"stdout":"hi\n","stderr":"","duration_ms":4})"
    );
    outcome.status = OutcomeStatus::signalled;
    outcome.signal = 11;
    outcome.background = {{7, "sleep 9"}};
    const auto json = outcome.to_json();
    EXPECT_FALSE(json.contains("exit_code"));
    EXPECT_EQ(json.at("signal").as_int64(), 11);
    EXPECT_EQ(json.at("background").as_array().size(), 1U);
}

TEST(Outcome, FailedCommandWithDeniedCallsIsAViolationAndKeepsItsCode) {
    Outcome outcome;
    outcome.status = OutcomeStatus::exited;
    outcome.denied = {"unshare", "mount"};
    outcome.name_violation();
    EXPECT_EQ(outcome.status, OutcomeStatus::exited) << "it succeeded";
    EXPECT_EQ(outcome.to_json().at("denied").as_array().size(), 2U);
    outcome.exit_code = 3;
    outcome.name_violation();
    EXPECT_EQ(outcome.status, OutcomeStatus::violation);
    EXPECT_TRUE(outcome.detail.starts_with("unshare, mount denied by the sandbox (EPERM): nested "))
        << outcome.detail;
    EXPECT_EQ(outcome.shell_code(), 3);
    EXPECT_EQ(outcome.to_json().at("exit_code"), 3);
    Outcome crashed;
    crashed.status = OutcomeStatus::signalled;
    crashed.signal = 6;
    crashed.denied = {"ptrace"};
    crashed.name_violation();
    EXPECT_EQ(crashed.status, OutcomeStatus::violation);
    EXPECT_EQ(crashed.shell_code(), 134);
    EXPECT_EQ(crashed.to_json().at("signal"), 6);
    Outcome late;
    late.status = OutcomeStatus::timed_out;
    late.denied = {"bpf"};
    late.name_violation();
    EXPECT_EQ(late.status, OutcomeStatus::timed_out);
}

TEST(Outcome, RawBytesTakeThePlaceOfTheText) {
    Outcome outcome;
    outcome.status = OutcomeStatus::exited;
    outcome.raw = outcome.lossy = true;
    outcome.raw_out = std::string("a\xFF\0b", 4);
    const auto json = outcome.to_json();
    EXPECT_EQ(json.at("stdout_base64"), "Yf8AYg==");
    EXPECT_EQ(json.at("stderr_base64"), "");
    EXPECT_FALSE(json.contains("stdout"));
    EXPECT_FALSE(json.contains("lossy"));
}

}  // namespace
}  // namespace ars::sandbox
