// share_config, version 2: who may read and who may manage an agent.
#pragma once

#include "base/fields.hpp"
#include "runtime/agents/agent.hpp"

#include <boost/json/object.hpp>

#include <vector>

namespace ars::agents {

// The shape as it stands in files and request bodies; scopes as in ShareConfig.
struct ShareConfigFields {
    std::int64_t version = 0;
    std::optional<AccessScope> read_scope;
    std::optional<AccessScope> manage_scope;
};
[[nodiscard]] const base::Fields<ShareConfigFields>& share_config_fields();

// The checks of a save: a department scope names departments, a user scope names users, and the
// manage scope stays within the read scope. Lists come out sorted and without duplicates; a global
// scope has none.
[[nodiscard]] ShareConfig checked_share_config(
    const ShareConfigFields& fields, const base::FieldPlace& place
);

// {"version": 2, "read_scope": {...} | null, "manage_scope": {...} | null}
[[nodiscard]] boost::json::object share_config_to_json(const ShareConfig& config);

// True when the scope admits the user.
[[nodiscard]] bool admits(const AccessScope& scope, const User& user);

}  // namespace ars::agents
