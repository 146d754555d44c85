// share_config, version 2: who may read and who may manage a thing that people share.
#pragma once

#include "base/fields.hpp"
#include "runtime/agents/agent.hpp"

#include <boost/json/object.hpp>

#include <string_view>
#include <vector>

namespace ars::agents {

// The shape as it stands in files and request bodies; scopes as in ShareConfig.
struct ShareConfigFields {
    std::int64_t version = 0;
    std::optional<AccessScope> read_scope;
    std::optional<AccessScope> manage_scope;
};
[[nodiscard]] const base::Fields<ShareConfigFields>& share_config_fields();

// Which access levels whoever saves may write. Files are the operator's word and may use all.
enum class AllowedLevels : std::uint8_t { all, user_only };
[[nodiscard]] AllowedLevels allowed_levels(UserRole role);

// The checks of a save: levels are allowed, a department scope names departments, a user scope
// names users, and the manage scope stays within the read scope. Lists come out sorted and without
// duplicates; a global scope has none.
[[nodiscard]] ShareConfig checked_share_config(
    const ShareConfigFields& fields, const base::FieldPlace& place, AllowedLevels levels
);

// {"version": 2, "read_scope": {...} | null, "manage_scope": {...} | null}
[[nodiscard]] boost::json::object share_config_to_json(const ShareConfig& config);

// True when the scope admits the user.
[[nodiscard]] bool admits(const AccessScope& scope, const User& user);

// What is shared. A role has a ceiling for each kind: role `user` manages agents and skills, but
// only reads knowledge bases.
enum class ResourceKind : std::uint8_t { agent, skill, knowledge_base };

// What a user may do: superadmin and creator manage, then share_config; all of it under the role's
// ceiling. `created_by` may be empty: nobody's.
[[nodiscard]] Permission permission(
    ResourceKind kind, const ShareConfig& config, std::string_view created_by, const User& user
);

}  // namespace ars::agents
