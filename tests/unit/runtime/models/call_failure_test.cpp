#include "runtime/models/call_failure.hpp"

#include "base/limits.hpp"

#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ars::models {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

struct AnswerCase {
    int status;
    std::string body;
    std::string code;
    bool retryable;
};

class Answers : public testing::TestWithParam<AnswerCase> {};

TEST_P(Answers, AreClassified) {
    const auto failure =
        failure_of_answer(GetParam().status, GetParam().body, std::nullopt, "http://h/v1");
    EXPECT_EQ(failure.error.code, GetParam().code) << GetParam().status << GetParam().body;
    EXPECT_EQ(failure.retryable, GetParam().retryable) << GetParam().status << GetParam().body;
    EXPECT_THAT(failure.error.message, HasSubstr("HTTP " + std::to_string(GetParam().status)));
}

INSTANTIATE_TEST_SUITE_P(
    Table,
    Answers,
    testing::Values(
        AnswerCase{400, R"({"error":{"message":"bad","code":null}})", "model_rejected", false},
        AnswerCase{401, R"({"error":"no key"})", "model_rejected", false},
        AnswerCase{403, R"({"detail":"no"})", "model_rejected", false},
        AnswerCase{404, "<html>not here</html>", "model_rejected", false},
        AnswerCase{422, R"([{"error":{"message":"x"}}])", "model_rejected", false},
        AnswerCase{302, "", "model_rejected", false},
        AnswerCase{408, "", "model_unavailable", true},
        AnswerCase{409, "", "model_unavailable", true},
        AnswerCase{429, "", "model_rate_limited", true},
        AnswerCase{429, R"({"error":{"code":"slow_down"}})", "model_rate_limited", true},
        AnswerCase{
            429,
            R"({"error":{"message":"You exceeded","type":"insufficient_quota"}})",
            "model_rejected",
            false
        },
        AnswerCase{
            429, R"({"error":{"code":"billing_hard_limit_reached"}})", "model_rejected", false
        },
        AnswerCase{500, "oops", "model_unavailable", true},
        AnswerCase{502, "<html>Bad Gateway</html>", "model_unavailable", true},
        AnswerCase{503, R"({"error":{"code":"server_is_overloaded"}})", "model_unavailable", true},
        AnswerCase{
            400, R"({"error":{"code":"context_length_exceeded"}})", "model_context_overflow", false
        },
        AnswerCase{
            400,
            R"({"error":{"message":"This model's maximum context length is 8192"}})",
            "model_context_overflow",
            false
        }
    )
);

struct StreamCase {
    std::string error;
    std::string code;
    bool retryable;
};

class StreamErrors : public testing::TestWithParam<StreamCase> {};

TEST_P(StreamErrors, AreClassified) {
    const auto failure = failure_of_error_value(boost::json::parse(GetParam().error));
    EXPECT_EQ(failure.error.code, GetParam().code) << GetParam().error;
    EXPECT_EQ(failure.retryable, GetParam().retryable) << GetParam().error;
}

INSTANTIATE_TEST_SUITE_P(
    Table,
    StreamErrors,
    testing::Values(
        StreamCase{R"({"message":"x","code":429})", "model_rate_limited", true},
        StreamCase{R"({"message":"x","code":"429"})", "model_rate_limited", true},
        StreamCase{R"({"message":"x","code":"rate_limit_exceeded"})", "model_rate_limited", true},
        StreamCase{
            R"({"message":"x","code":null,"type":"server_error"})", "model_unavailable", true
        },
        StreamCase{R"({"message":"x","code":502})", "model_unavailable", true},
        StreamCase{R"({"message":"x","type":"invalid_request_error"})", "model_rejected", false},
        StreamCase{R"({"message":"x","code":401})", "model_rejected", false},
        StreamCase{R"({"message":"x","code":"insufficient_quota"})", "model_rejected", false},
        StreamCase{
            R"({"message":"x","code":"context_length_exceeded"})", "model_context_overflow", false
        },
        StreamCase{R"("overloaded")", "model_unavailable", true},
        StreamCase{R"([{"error":{"code":503}}])", "model_unavailable", true}
    )
);

TEST(CallFailure, KeepsTheFirstTwoKibibytesOfABody) {
    const std::string body = "start " + std::string(10'000, 'x') + " end";
    const auto failure = failure_of_answer(400, body, std::nullopt, "http://h/v1");
    EXPECT_THAT(failure.error.message, HasSubstr("start xxx"));
    EXPECT_THAT(failure.error.message, testing::Not(HasSubstr("end")));
    EXPECT_LT(failure.error.message.size(), base::limits::kModelErrorBodyBytes + 100);
}

TEST(CallFailure, ReadsRetryAfterAsSecondsOrDate) {
    EXPECT_EQ(parse_retry_after("7", 0), milliseconds(7000));
    EXPECT_EQ(parse_retry_after(" 0.5 ", 0), milliseconds(500));
    // 1700000000 is Tue, 14 Nov 2023 22:13:20 GMT.
    EXPECT_EQ(
        parse_retry_after("Tue, 14 Nov 2023 22:13:30 GMT", 1'700'000'000'000), milliseconds(10'000)
    );
    EXPECT_EQ(
        parse_retry_after("Tue, 14 Nov 2023 22:13:00 GMT", 1'700'000'000'000), milliseconds(0)
    );
    EXPECT_EQ(parse_retry_after("-1", 0), std::nullopt);
    EXPECT_EQ(parse_retry_after("soon", 0), std::nullopt);
    EXPECT_EQ(parse_retry_after("", 0), std::nullopt);
    EXPECT_EQ(parse_retry_after("1e300", 0), std::chrono::hours(24));
    EXPECT_EQ(parse_retry_after("nan", 0), std::nullopt);
}

TEST(CallFailure, FindsAWaitInTheText) {
    EXPECT_EQ(retry_hint_in("Rate limit reached. Please try again in 1.2s."), milliseconds(1200));
    EXPECT_EQ(retry_hint_in("Try again in 450ms"), milliseconds(450));
    EXPECT_EQ(retry_hint_in("try again in 20 seconds"), milliseconds(20'000));
    EXPECT_EQ(retry_hint_in("please retry in 2m"), milliseconds(120'000));
    EXPECT_EQ(
        retry_hint_in(R"({"error":{"details":[{"@type":"RetryInfo","retryDelay": "12s"}]}})"),
        milliseconds(12'000)
    );
    EXPECT_EQ(retry_hint_in("try again in a while"), std::nullopt);
    EXPECT_EQ(retry_hint_in(""), std::nullopt);
}

TEST(CallFailure, PrefersTheHeaderToTheText) {
    const auto failure =
        failure_of_answer(429, "try again in 9s", milliseconds(100), "http://h/v1");
    EXPECT_EQ(failure.retry_after, milliseconds(100));
}

}  // namespace
}  // namespace ars::models
