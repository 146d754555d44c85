#include "base/result.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace ars::base {
namespace {

Result<int> half(int value) {
    if (value % 2 != 0) {
        return fail(ErrorKind::invalid, "odd_number", "3 is odd; give an even number");
    }
    return value / 2;
}

TEST(Result, CarriesEitherAValueOrKindCodeAndSentence) {
    EXPECT_EQ(half(4).value(), 2);
    const auto failed = half(3);
    ASSERT_FALSE(failed.has_value());
    EXPECT_EQ(failed.error().kind, ErrorKind::invalid);
    EXPECT_EQ(failed.error().code, "odd_number");
    EXPECT_EQ(failed.error().message, "3 is odd; give an even number");
    EXPECT_EQ(failed.error().sys_errno, 0);
}

TEST(ErrnoError, NamesCallObjectReasonAndNumber) {
    const Error error = errno_error("open_failed", "open /x", ENOENT);
    EXPECT_EQ(error.kind, ErrorKind::io);
    EXPECT_EQ(error.code, "open_failed");
    EXPECT_EQ(error.sys_errno, ENOENT);
    EXPECT_EQ(error.message, "open /x: No such file or directory (errno 2)");
}

TEST(ErrnoError, SurvivesANumberTheKernelNeverGave) {
    const Error error = errno_error("odd", "call", 99'999);
    EXPECT_EQ(error.sys_errno, 99'999);
    EXPECT_EQ(error.message, "call: unknown error (errno 99999)");
}

TEST(FailErrno, ConvertsToAnyResult) {
    const Result<int> failed = fail_errno("read_failed", "read", EIO);
    ASSERT_FALSE(failed.has_value());
    EXPECT_EQ(failed.error().sys_errno, EIO);
}

}  // namespace
}  // namespace ars::base
