#include "tests/unit/runtime/people/people_fixture.hpp"

namespace ars::people {
namespace {

class UserChanges : public PeopleTest {
  protected:
    std::string create(const Caller& by, User user) {
        return code(wait(people_->create_user(by, std::move(user))));
    }
    std::string change(const Caller& by, const std::string& uid, UserChange wanted) {
        return code(wait(people_->change_user(by, uid, std::move(wanted))));
    }
    std::string erase(const Caller& by, const std::string& uid) {
        return code(wait(people_->delete_user(by, uid)));
    }
};

TEST_F(UserChanges, AUserIsThereAtOnceAndAfterARestart) {
    EXPECT_EQ(create(adam_, {"bob", UserRole::user, "sales"}), "ok");
    EXPECT_EQ(change(adam_, "bob", {.department = "research"}), "ok");
    open(declared());
    const auto bob = people_->user_entry("bob");
    ASSERT_TRUE(bob);
    EXPECT_EQ(bob->user.role, UserRole::user);
    EXPECT_EQ(bob->user.department, "research");
    EXPECT_EQ(bob->created_by, "adam");
    EXPECT_FALSE(bob->declared);
    const auto lines = audit();
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(lines[0].at("action"), "user.create");
    EXPECT_EQ(lines[1].at("action"), "user.update");
    EXPECT_EQ(lines[1].at("target"), "bob");
}

TEST_F(UserChanges, NobodyGivesOrTouchesARoleAboveHisOwn) {
    EXPECT_EQ(create(alice_, {"bob", UserRole::user, ""}), "admins_only");
    EXPECT_EQ(create(adam_, {"bob", UserRole::superadmin, ""}), "role_too_low");
    EXPECT_EQ(create(root_, {"boss", UserRole::superadmin, ""}), "ok");
    EXPECT_EQ(create(adam_, {"bob", UserRole::admin, ""}), "ok");
    EXPECT_EQ(change(adam_, "bob", {.role = UserRole::superadmin}), "role_too_low");
    EXPECT_EQ(change(adam_, "boss", {.role = UserRole::user}), "role_too_low");
    EXPECT_EQ(erase(adam_, "boss"), "role_too_low");
    EXPECT_EQ(change(alice_, "bob", {}), "admins_only");
    EXPECT_EQ(erase(alice_, "bob"), "admins_only");
    EXPECT_EQ(audit().size(), 2U);
    EXPECT_EQ(people_->find_user("boss")->role, UserRole::superadmin);
    EXPECT_EQ(people_->find_user("bob")->role, UserRole::admin);
}

TEST_F(UserChanges, DeclaredUsersAreLockedAndNamesAreTaken) {
    EXPECT_EQ(create(root_, {"alice", UserRole::user, ""}), "user_locked");
    EXPECT_EQ(change(root_, "alice", {.role = UserRole::admin}), "user_locked");
    EXPECT_EQ(erase(root_, "alice"), "user_locked");
    EXPECT_EQ(create(root_, {"bob", UserRole::user, ""}), "ok");
    EXPECT_EQ(create(root_, {"bob", UserRole::user, ""}), "user_exists");
    EXPECT_EQ(change(root_, "nobody", {}), "user_not_found");
    EXPECT_EQ(erase(root_, "nobody"), "user_not_found");
    open({});
    EXPECT_EQ(create(root_, {"local", UserRole::user, ""}), "user_locked");
}

TEST_F(UserChanges, ADeletedUsersKeysNeverWorkAgain) {
    ASSERT_EQ(create(root_, {"bob", UserRole::user, ""}), "ok");
    const std::string secret = make_key(root_, {.name = "bob's", .uid = "bob"}).secret;
    ASSERT_NE(use(secret), nullptr);
    EXPECT_EQ(erase(root_, "bob"), "ok");
    EXPECT_EQ(use(secret), nullptr);
    EXPECT_EQ(audit().back().at("action"), "user.delete");
    EXPECT_EQ(audit().back().at("detail").at("disabled_keys"), 1);
    // Neither when somebody else gets the name, nor after a restart.
    ASSERT_EQ(create(root_, {"bob", UserRole::user, ""}), "ok");
    EXPECT_EQ(use(secret), nullptr);
    open(declared());
    EXPECT_EQ(use(secret), nullptr);
    EXPECT_EQ(people_->keys_for(root_, "bob").size(), 1U);
}

TEST_F(UserChanges, NobodyDeletesHimself) {
    ASSERT_EQ(create(root_, {"boss", UserRole::admin, ""}), "ok");
    const Caller boss = caller("boss", UserRole::admin);
    EXPECT_EQ(erase(boss, "boss"), "own_user");
    Caller acting = adam_;
    acting.key_uid = "boss";
    EXPECT_EQ(erase(acting, "boss"), "own_user");
    EXPECT_TRUE(people_->find_user("boss"));
}

}  // namespace
}  // namespace ars::people
