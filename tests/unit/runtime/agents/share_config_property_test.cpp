// Random share_configs and random people against a plain model of the rules, written down here once
// more in the words of the specification. ARS_SEED repeats a run.
#include "runtime/agents/agent_table.hpp"
#include "runtime/agents/share_config.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>

namespace ars::agents {
namespace {

namespace json = boost::json;

constexpr int kConfigs = 20'000;
constexpr int kPeopleOfAConfig = 8;

// --- the model ----------------------------------------------------------------------------------

struct ModelScope {
    std::string level;
    std::set<std::string> members;

    [[nodiscard]] bool has(const User& user) const {
        if (level == "global") {
            return true;
        }
        const std::string& key = level == "department" ? user.department : user.uid;
        return !key.empty() && members.contains(key);
    }
};
struct ModelConfig {
    std::optional<ModelScope> read;
    std::optional<ModelScope> manage;
};

// A scope as written, without a judgement on it.
std::optional<ModelScope> model_scope(const json::object& config, std::string_view side) {
    const json::value* scope = config.if_contains(side);
    if (scope == nullptr || scope->is_null()) {
        return std::nullopt;
    }
    ModelScope out{"global", {}};
    if (const json::value* level = scope->as_object().if_contains("access_level")) {
        out.level = level->as_string();
    }
    if (out.level != "global") {
        const char* list = out.level == "department" ? "department_ids" : "user_uids";
        if (const json::value* members = scope->as_object().if_contains(list)) {
            for (const json::value& member : members->as_array()) {
                out.members.emplace(member.as_string());
            }
        }
    }
    return out;
}

bool scope_can_be_saved(const std::optional<ModelScope>& scope, bool only_user_level) {
    return !scope || ((scope->level == "user" || !only_user_level) &&
                      (scope->level == "global" || !scope->members.empty()));
}

bool can_be_saved(const ModelConfig& config, bool only_user_level) {
    if (!scope_can_be_saved(config.read, only_user_level) ||
        !scope_can_be_saved(config.manage, only_user_level)) {
        return false;
    }
    if (!config.read || !config.manage || config.read->level == "global") {
        return true;
    }
    return config.manage->level == config.read->level && std::includes(
                                                             config.read->members.begin(),
                                                             config.read->members.end(),
                                                             config.manage->members.begin(),
                                                             config.manage->members.end()
                                                         );
}

Permission model_permission(
    const ModelConfig& config, const std::string& creator, ResourceKind kind, const User& user
) {
    const bool reads = config.read && config.read->has(user);
    const bool manages = config.manage && config.manage->has(user);
    Permission out = Permission::none;
    if (user.role == UserRole::superadmin) {
        out = Permission::manage;
    } else if (!creator.empty() && user.uid == creator) {
        out = Permission::manage;
    } else if (manages && (!config.read || reads)) {
        out = Permission::manage;
    } else if (reads) {
        out = Permission::read;
    }
    if (kind == ResourceKind::knowledge_base && user.role == UserRole::user &&
        out == Permission::manage) {
        out = Permission::read;
    }
    return out;
}

// --- what is drawn ------------------------------------------------------------------------------

class Dice {
  public:
    explicit Dice(unsigned seed) : random_(seed) {}

    std::size_t below(std::size_t bound) {
        return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_);
    }
    bool one_in(std::size_t n) { return below(n) == 0; }

    // Few names, so that scopes and people meet; "" is a department that nobody is in.
    std::string department() {
        return one_in(12) ? "" : std::string(1, static_cast<char>('a' + below(3)));
    }
    std::string uid() { return "u" + std::to_string(below(5)); }

    json::value scope() {
        if (one_in(5)) {
            return nullptr;
        }
        json::object out;
        static constexpr const char* kLevels[] = {
            "global", "department", "department", "user", "user"
        };
        if (!one_in(8)) {
            out["access_level"] = kLevels[below(std::size(kLevels))];
        }
        // Any lists with any level: those of another level count for nothing.
        if (!one_in(6)) {
            out["department_ids"] = list([this] { return department(); });
        }
        if (!one_in(6)) {
            out["user_uids"] = list([this] { return uid(); });
        }
        return out;
    }
    json::object config() {
        json::object out{{"version", 2}};
        if (!one_in(10)) {
            out["read_scope"] = scope();
        }
        if (!one_in(10)) {
            out["manage_scope"] = scope();
        }
        // By chance alone one scope seldom lies within the other.
        if (one_in(3) && out.contains("read_scope") && out.at("read_scope").is_object()) {
            out["manage_scope"] = narrowed(out.at("read_scope").as_object());
        }
        return out;
    }
    User user() {
        static constexpr UserRole kRoles[] = {
            UserRole::user,
            UserRole::user,
            UserRole::user,
            UserRole::admin,
            UserRole::admin,
            UserRole::superadmin
        };
        return {uid(), kRoles[below(std::size(kRoles))], department()};
    }
    std::string creator() { return one_in(3) ? "" : uid(); }
    ResourceKind kind() {
        static constexpr ResourceKind kKinds[] = {
            ResourceKind::agent, ResourceKind::skill, ResourceKind::knowledge_base
        };
        return kKinds[below(std::size(kKinds))];
    }

  private:
    template <class Draw>
    json::array list(Draw draw) {
        json::array out;
        for (std::size_t i = below(6); i > 0; --i) {
            out.emplace_back(draw());
        }
        return out;
    }
    json::object narrowed(const json::object& scope) {
        json::object out(scope);
        for (const char* name : {"department_ids", "user_uids"}) {
            if (const json::value* members = scope.if_contains(name)) {
                json::array kept;
                for (const json::value& member : members->as_array()) {
                    if (!one_in(3)) {
                        kept.push_back(member);
                    }
                }
                out[name] = std::move(kept);
            }
        }
        return out;
    }

    std::mt19937 random_;
};

unsigned seed() {
    const char* given = std::getenv("ARS_SEED");
    return given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10))
                            : std::random_device{}();
}

// --- the two side by side -----------------------------------------------------------------------

struct Saved {
    ShareConfig config;
    std::vector<base::Fault> faults;
};
Saved save(const json::object& written, AllowedLevels levels) {
    Saved out;
    ShareConfigFields fields;
    out.faults = share_config_fields().decode(written, fields);
    out.config = checked_share_config(fields, base::FieldPlace{"", out.faults, {}}, levels);
    return out;
}

// As a store of an earlier time may hold it: nothing was checked.
ShareConfig stored(const json::object& written) {
    ShareConfigFields fields;
    EXPECT_TRUE(share_config_fields().decode(written, fields).empty());
    return {fields.read_scope, fields.manage_scope};
}

json::value normal_form(const std::optional<ModelScope>& scope) {
    if (!scope) {
        return nullptr;
    }
    const json::array members(scope->members.begin(), scope->members.end());
    return {
        {"access_level", scope->level},
        {"department_ids", scope->level == "department" ? members : json::array{}},
        {"user_uids", scope->level == "user" ? members : json::array{}}
    };
}

void expect_same_permissions(
    Dice& dice, const ShareConfig& config, const ModelConfig& model, const json::object& written
) {
    for (int i = 0; i < kPeopleOfAConfig; ++i) {
        const User user = dice.user();
        const std::string creator = dice.creator();
        const ResourceKind kind = dice.kind();
        const Permission found = permission(kind, config, creator, user);
        ASSERT_EQ(found, model_permission(model, creator, kind, user))
            << json::serialize(written) << " creator " << creator << " kind "
            << static_cast<int>(kind) << " user " << user.uid << " role "
            << static_cast<int>(user.role) << " department " << user.department;
        if (kind == ResourceKind::agent) {
            Agent agent;
            agent.share_config = config;
            agent.created_by = creator;
            ASSERT_EQ(permission(agent, user), found);
        }
    }
}

TEST(ShareConfigProperty, SavesAndPermissionsAreThoseOfThePlainModel) {
    const unsigned drawn = seed();
    SCOPED_TRACE("ARS_SEED=" + std::to_string(drawn));
    std::printf("ARS_SEED=%u\n", drawn);
    Dice dice(drawn);
    int accepted = 0;
    int wider = 0;
    for (int i = 0; i < kConfigs; ++i) {
        const json::object written = dice.config();
        const ModelConfig model{
            model_scope(written, "read_scope"), model_scope(written, "manage_scope")
        };
        for (const AllowedLevels levels : {AllowedLevels::all, AllowedLevels::user_only}) {
            const bool only_user = levels == AllowedLevels::user_only;
            const Saved saved = save(written, levels);
            ASSERT_EQ(saved.faults.empty(), can_be_saved(model, only_user))
                << json::serialize(written) << (only_user ? " by a user" : " by an admin");
            if (!saved.faults.empty()) {
                continue;
            }
            ++accepted;
            const json::object kept = share_config_to_json(saved.config);
            ASSERT_EQ(kept.at("read_scope"), normal_form(model.read)) << json::serialize(written);
            ASSERT_EQ(kept.at("manage_scope"), normal_form(model.manage))
                << json::serialize(written);
            const Saved again = save(kept, levels);
            ASSERT_TRUE(again.faults.empty());
            ASSERT_EQ(share_config_to_json(again.config), kept) << "a saved one saves as it is";
            ASSERT_NO_FATAL_FAILURE(expect_same_permissions(dice, saved.config, model, written));
        }
        wider += can_be_saved(model, false) ? 0 : 1;
        ASSERT_NO_FATAL_FAILURE(expect_same_permissions(dice, stored(written), model, written));
    }
    // The dice must throw both kinds, or nothing was tested.
    EXPECT_GT(accepted, kConfigs / 4);
    EXPECT_GT(wider, kConfigs / 10);
}

}  // namespace
}  // namespace ars::agents
