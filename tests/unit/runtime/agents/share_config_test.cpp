#include "runtime/agents/share_config.hpp"

#include "runtime/agents/agent_table.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ars::agents {
namespace {

namespace json = boost::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Checked {
    ShareConfig config;
    std::vector<std::string> faults;
};

Checked check(std::string_view text, AllowedLevels levels = AllowedLevels::all) {
    ShareConfigFields fields;
    auto faults = share_config_fields().decode(json::parse(text), fields);
    Checked out;
    out.config = checked_share_config(fields, base::FieldPlace{"", faults, {}}, levels);
    for (const auto& fault : faults) {
        out.faults.push_back(base::describe(fault));
    }
    return out;
}

Agent agent_with(std::string_view share, std::string creator = "") {
    Agent agent;
    agent.share_config = check(share).config;
    agent.created_by = std::move(creator);
    return agent;
}

const User kAlice{"alice", UserRole::user, "research"};
const User kBob{"bob", UserRole::user, "sales"};
const User kAdmin{"adam", UserRole::admin, "research"};
const User kRoot{"root", UserRole::superadmin, ""};

TEST(ShareConfig, K14AConfigWithoutVersion2IsRefused) {
    EXPECT_THAT(
        check("{}").faults, ElementsAre(HasSubstr("version: is missing; write version: 2"))
    );
    EXPECT_THAT(
        check(R"({"version": 1})").faults, ElementsAre(HasSubstr("found 1; write version: 2"))
    );
}

TEST(ShareConfig, ListsAreSortedWithoutDuplicatesAndGlobalHasNone) {
    const Checked department = check(
        R"({"version": 2, "read_scope": {"access_level": "department", "department_ids": ["b", "a", "b"],
            "user_uids": ["x"]}})"
    );
    EXPECT_THAT(department.faults, IsEmpty());
    EXPECT_THAT(department.config.read_scope->department_ids, ElementsAre("a", "b"));
    EXPECT_THAT(department.config.read_scope->user_uids, IsEmpty());
    const Checked global =
        check(R"({"version": 2, "read_scope": {"user_uids": ["x"]}, "manage_scope": null})");
    EXPECT_EQ(global.config.read_scope->level, AccessLevel::global) << "a missing level is global";
    EXPECT_THAT(global.config.read_scope->user_uids, IsEmpty());
    EXPECT_EQ(
        json::serialize(share_config_to_json(global.config)),
        R"({"version":2,"read_scope":{"access_level":"global","department_ids":[],"user_uids":[]},"manage_scope":null})"
    );
}

TEST(ShareConfig, AScopeThatAdmitsNobodyIsRefused) {
    EXPECT_THAT(
        check(R"({"version": 2, "read_scope": {"access_level": "department"}})").faults,
        ElementsAre(HasSubstr("read_scope.department_ids: is empty"))
    );
    EXPECT_THAT(
        check(R"({"version": 2, "manage_scope": {"access_level": "user", "user_uids": []}})")
            .faults,
        ElementsAre(HasSubstr("manage_scope.user_uids: is empty"))
    );
}

TEST(ShareConfig, K12ManageWiderThanReadIsRefused) {
    EXPECT_THAT(
        check(R"({"version": 2, "read_scope": {"access_level": "user", "user_uids": ["alice"]},
                  "manage_scope": {"access_level": "user", "user_uids": ["alice", "bob"]}})")
            .faults,
        ElementsAre(HasSubstr("manage_scope: admits \"bob\""))
    );
    EXPECT_THAT(
        check(
            R"({"version": 2, "read_scope": {"access_level": "department", "department_ids": ["research"]},
                  "manage_scope": {"access_level": "user", "user_uids": ["alice"]}})"
        )
            .faults,
        ElementsAre(HasSubstr("manage_scope.access_level: must be the access_level of read_scope"))
    );
    EXPECT_THAT(
        check(
            R"({"version": 2, "read_scope": {}, "manage_scope": {"access_level": "user", "user_uids": ["alice"]}})"
        )
            .faults,
        IsEmpty()
    );
}

TEST(ShareConfig, K10GlobalReadAndDepartmentManage) {
    const Agent agent = agent_with(
        R"({"version": 2, "read_scope": {"access_level": "global"},
            "manage_scope": {"access_level": "department", "department_ids": ["research"]}})"
    );
    EXPECT_EQ(permission(agent, kAdmin), Permission::manage);
    EXPECT_EQ(permission(agent, kBob), Permission::read);
    EXPECT_EQ(permission(agent, User{"carl", UserRole::user, ""}), Permission::read);

    const auto base_permission = [&agent](const User& user) {
        return permission(ResourceKind::knowledge_base, agent.share_config, "", user);
    };
    EXPECT_EQ(base_permission(kAdmin), Permission::manage);
    EXPECT_EQ(base_permission(User{"eve", UserRole::admin, "sales"}), Permission::read);
    EXPECT_EQ(base_permission(kAlice), Permission::read) << "role user only reads knowledge bases";
    EXPECT_EQ(permission(agent, kAlice), Permission::manage) << "the ceiling is not the agents'";
}

TEST(ShareConfig, K11AStoredManageScopeWiderThanReadGrantsNothingOutsideRead) {
    const Agent agent = agent_with(
        R"({"version": 2, "read_scope": {"access_level": "user", "user_uids": ["alice"]},
            "manage_scope": {"access_level": "user", "user_uids": ["alice", "bob"]}})"
    );
    EXPECT_EQ(permission(agent, kAlice), Permission::manage);
    EXPECT_EQ(permission(agent, kBob), Permission::none);
}

TEST(ShareConfig, K13ManageWithoutReadLetsMatchingUsersIn) {
    const Agent agent = agent_with(
        R"({"version": 2, "manage_scope": {"access_level": "user", "user_uids": ["alice"]}})"
    );
    EXPECT_EQ(permission(agent, kAlice), Permission::manage);
    EXPECT_EQ(permission(agent, kBob), Permission::none);
}

TEST(ShareConfig, K14CreatorAndSuperadminAlwaysManage) {
    const Agent agent = agent_with(R"({"version": 2})", "bob");
    EXPECT_EQ(permission(agent, kBob), Permission::manage);
    EXPECT_EQ(permission(agent, kRoot), Permission::manage);
    EXPECT_EQ(permission(agent, kAdmin), Permission::none) << "an admin is not a superadmin";
    EXPECT_EQ(
        permission(agent_with(R"({"version": 2})"), User{"", UserRole::user, ""}), Permission::none
    ) << "no creator is not the creator without a name";
}

TEST(ShareConfig, K15WhoMayOnlyUseLevelUserIsRefusedTheOthers) {
    EXPECT_EQ(allowed_levels(UserRole::user), AllowedLevels::user_only);
    EXPECT_EQ(allowed_levels(UserRole::admin), AllowedLevels::all);
    EXPECT_EQ(allowed_levels(UserRole::superadmin), AllowedLevels::all);

    EXPECT_THAT(
        check(R"({"version": 2, "read_scope": {}})", AllowedLevels::user_only).faults,
        ElementsAre(HasSubstr("read_scope.access_level: is for admins; write access_level: user"))
    );
    EXPECT_THAT(
        check(
            R"({"version": 2, "read_scope": {"access_level": "user", "user_uids": ["alice"]},
                "manage_scope": {"access_level": "department", "department_ids": ["research"]}})",
            AllowedLevels::user_only
        )
            .faults,
        ElementsAre(HasSubstr("manage_scope.access_level: is for admins"))
    );
    EXPECT_THAT(
        check(
            R"({"version": 2, "read_scope": {"access_level": "user", "user_uids": ["alice", "bob"]},
                "manage_scope": {"access_level": "user", "user_uids": ["bob"]}})",
            AllowedLevels::user_only
        )
            .faults,
        IsEmpty()
    );
    EXPECT_THAT(check(R"({"version": 2, "read_scope": {}})").faults, IsEmpty());
}

TEST(ShareConfig, AUserWithoutADepartmentIsInNone) {
    const Agent agent = agent_with(
        R"({"version": 2, "read_scope": {"access_level": "department", "department_ids": ["", "research"]}})"
    );
    EXPECT_EQ(permission(agent, User{"carl", UserRole::user, ""}), Permission::none);
    EXPECT_EQ(permission(agent, kAlice), Permission::read);
}

}  // namespace
}  // namespace ars::agents
