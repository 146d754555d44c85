// act_for and rate_limit of appliance.yaml, and dates.
#include "server/config_files.hpp"
#include "tests/unit/server/config_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ars::server {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ConfigPeopleTest = ConfigFixture;

TEST_F(ConfigPeopleTest, KeysMayActForOthersAndHaveRates) {
    set("ARS_TEST_ONE", kKey);
    set("ARS_TEST_TWO", std::string(kKey) + " two");
    const LoadedConfig loaded = good(std::string(kModels) + R"(
server: {rate_limit: {requests: 600, per: 1m, burst: 100}}
users: [{uid: a, role: admin}, {uid: b}]
api_keys:
  - {name: one, uid: a, key_env: ARS_TEST_ONE, act_for: [b, made-by-api]}
  - {name: two, uid: a, key_env: ARS_TEST_TWO, act_for: ["*"], rate_limit: {requests: 5}}
)");
    const people::Declaration people = loaded.declared_people();
    ASSERT_TRUE(people.rate_limit);
    EXPECT_EQ(people.rate_limit->requests, 600U);
    EXPECT_EQ(people.rate_limit->per, 1min);
    EXPECT_EQ(people.rate_limit->burst, 100U);
    ASSERT_EQ(people.keys.size(), 2U);
    EXPECT_THAT(people.keys[0].act_for, ElementsAre("b", "made-by-api"));
    EXPECT_FALSE(people.keys[0].rate_limit);
    ASSERT_TRUE(people.keys[1].rate_limit);
    EXPECT_EQ(people.keys[1].rate_limit->requests, 5U);
    EXPECT_FALSE(people.keys[1].rate_limit->burst);
    EXPECT_EQ(people.file, path());
}

TEST_F(ConfigPeopleTest, ContradictionsAreFaults) {
    set("ARS_TEST_ONE", kKey);
    EXPECT_THAT(
        faults(std::string(kModels) + R"(server:
  rate_limit: {requests: 0, per: 1ms}
users: [{uid: a}, {uid: boss, role: superadmin}]
api_keys:
  - name: one
    uid: a
    key_env: ARS_TEST_ONE
    act_for: ["", b, b, "*", boss]
    rate_limit: {per: 1m}
)"),
        ElementsAre(
            HasSubstr("6: server.rate_limit.requests: "),
            HasSubstr("6: server.rate_limit.per: "),
            HasSubstr("api_keys[0].rate_limit.requests: "),
            HasSubstr("12: api_keys[0].act_for[0]: is empty; name a user"),
            HasSubstr("12: api_keys[0].act_for[2]: \"b\" stands twice"),
            HasSubstr("12: api_keys[0].act_for[3]: \"*\" is all users"),
            HasSubstr("12: api_keys[0].act_for[4]: \"boss\" is superadmin, which is above \"a\"")
        )
    );
}

TEST(ParseDate, TakesWhatClientsWrite) {
    EXPECT_EQ(parse_date("1970-01-02"), 86'400'000);
    EXPECT_EQ(parse_date("1970-01-01T00:00:01Z"), 1000);
    EXPECT_EQ(parse_date("1970-01-01T00:00:01.5Z"), 1500);
    EXPECT_EQ(parse_date("1970-01-01T00:00:01.123456+00:00"), 1123);
    EXPECT_EQ(parse_date("1970-01-01T02:00:00+02:00"), 0);
    EXPECT_EQ(parse_date("1970-01-01T00:00:00-01:30"), 5'400'000);
    for (const char* text :
         {"",
          "tomorrow",
          "1970-13-01",
          "1970-02-30",
          "1970-01-01T00:00:01",
          "1970-01-01T24:00:00Z",
          "1970-01-01T00:00:01.Z",
          "1970-01-01T00:00:01.1234567890Z",
          "1970-01-01T00:00:01+2",
          "1970-01-01T00:00:01+24:00",
          "1970-01-01T00:00:01Zx",
          "1970-01-01 00:00:01Z",
          "197-001-01",
          "1970--1-01"}) {
        EXPECT_FALSE(parse_date(text)) << text;
    }
}

}  // namespace
}  // namespace ars::server
