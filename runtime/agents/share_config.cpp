#include "runtime/agents/share_config.hpp"

#include "runtime/agents/agent_table.hpp"

#include <algorithm>

namespace ars::agents {

namespace {

constexpr std::int64_t kVersion = 2;

const base::Fields<AccessScope>& access_scope_fields() {
    static const base::Fields<AccessScope> fields =
        base::Fields<AccessScope>{}
            .choice(
                "access_level",
                &AccessScope::level,
                {{"global", AccessLevel::global},
                 {"department", AccessLevel::department},
                 {"user", AccessLevel::user}},
                {.doc = "Whom the scope admits: everybody, some departments, or some users."}
            )
            .texts(
                "department_ids",
                &AccessScope::department_ids,
                {.doc = "The departments of level `department`."}
            )
            .texts("user_uids", &AccessScope::user_uids, {.doc = "The users of level `user`."});
    return fields;
}

void sort_unique(std::vector<std::string>& list) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
}

std::vector<std::string>& members(AccessScope& scope) {
    return scope.level == AccessLevel::department ? scope.department_ids : scope.user_uids;
}

// The scope in its normal form; a fault when it is not allowed or admits nobody.
AccessScope normal(AccessScope scope, const base::FieldPlace& place, AllowedLevels levels) {
    if (levels == AllowedLevels::user_only && scope.level != AccessLevel::user) {
        place.at("access_level")
            .fault("is for admins", "write access_level: user and name users in user_uids");
        return scope;
    }
    if (scope.level == AccessLevel::global) {
        return AccessScope{};
    }
    const bool department = scope.level == AccessLevel::department;
    (department ? scope.user_uids : scope.department_ids).clear();
    sort_unique(members(scope));
    if (members(scope).empty()) {
        place.at(department ? "department_ids" : "user_uids")
            .fault(
                "is empty, so the scope admits nobody",
                department ? "name a department, or use access_level: global"
                           : "name a user, or use access_level: global"
            );
    }
    return scope;
}

void check_manage_within_read(
    AccessScope& manage, AccessScope& read, const base::FieldPlace& place
) {
    if (read.level == AccessLevel::global) {
        return;
    }
    if (manage.level != read.level) {
        place.at("access_level")
            .fault(
                "must be the access_level of read_scope", "nobody may manage what they can't read"
            );
        return;
    }
    for (const std::string& member : members(manage)) {
        if (!std::binary_search(members(read).begin(), members(read).end(), member)) {
            place.fault("admits \"" + member + "\", whom read_scope does not admit");
        }
    }
}

Permission shared_with(const ShareConfig& config, std::string_view created_by, const User& user) {
    if (user.role == UserRole::superadmin || (!created_by.empty() && created_by == user.uid)) {
        return Permission::manage;
    }
    const auto& [read, manage] = config;
    // A stored manage scope wider than the read scope never widens access: managing needs both.
    if (manage && admits(*manage, user) && (!read || admits(*read, user))) {
        return Permission::manage;
    }
    return read && admits(*read, user) ? Permission::read : Permission::none;
}

Permission ceiling(ResourceKind kind, UserRole role) {
    return kind == ResourceKind::knowledge_base && role == UserRole::user ? Permission::read
                                                                          : Permission::manage;
}

}  // namespace

const base::Fields<ShareConfigFields>& share_config_fields() {
    static const base::Fields<ShareConfigFields> fields =
        base::Fields<ShareConfigFields>{}
            .integer(
                "version",
                &ShareConfigFields::version,
                {.required = true,
                 .min = kVersion,
                 .max = kVersion,
                 .remedy = "write version: 2",
                 .doc = "Always 2."}
            )
            .object(
                "read_scope",
                &ShareConfigFields::read_scope,
                access_scope_fields(),
                {.doc = "Who may see and run the agent; null: only its creator."}
            )
            .object(
                "manage_scope",
                &ShareConfigFields::manage_scope,
                access_scope_fields(),
                {.doc = "Who may change it; null: only its creator."}
            );
    return fields;
}

AllowedLevels allowed_levels(UserRole role) {
    return role == UserRole::user ? AllowedLevels::user_only : AllowedLevels::all;
}

ShareConfig checked_share_config(
    const ShareConfigFields& fields, const base::FieldPlace& place, AllowedLevels levels
) {
    const std::size_t faults_before = place.faults.size();
    ShareConfig out;
    if (fields.read_scope) {
        out.read_scope = normal(*fields.read_scope, place.at("read_scope"), levels);
    }
    if (fields.manage_scope) {
        out.manage_scope = normal(*fields.manage_scope, place.at("manage_scope"), levels);
    }
    // Of a scope that is wrong itself nothing more is said.
    if (out.read_scope && out.manage_scope && place.faults.size() == faults_before) {
        check_manage_within_read(*out.manage_scope, *out.read_scope, place.at("manage_scope"));
    }
    return out;
}

boost::json::object share_config_to_json(const ShareConfig& config) {
    return share_config_fields().encode({kVersion, config.read_scope, config.manage_scope});
}

bool admits(const AccessScope& scope, const User& user) {
    const auto holds = [](const std::vector<std::string>& list, const std::string& item) {
        return !item.empty() && std::find(list.begin(), list.end(), item) != list.end();
    };
    switch (scope.level) {
        case AccessLevel::global:
            return true;
        case AccessLevel::department:
            return holds(scope.department_ids, user.department);
        case AccessLevel::user:
            return holds(scope.user_uids, user.uid);
    }
    return false;
}

Permission permission(
    ResourceKind kind, const ShareConfig& config, std::string_view created_by, const User& user
) {
    return std::min(shared_with(config, created_by, user), ceiling(kind, user.role));
}

Permission permission(const Agent& agent, const User& user) {
    return permission(ResourceKind::agent, agent.share_config, agent.created_by, user);
}

}  // namespace ars::agents
