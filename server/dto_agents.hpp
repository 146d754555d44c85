// The JSON of an agent as one user may see it.
#pragma once

#include "runtime/agents/agent_table.hpp"

#include <boost/json/object.hpp>

namespace ars::server {

// Settings that only administrators may see are left out for others. A shorter object for lists is
// not made: clients expect the same shape everywhere.
[[nodiscard]] boost::json::object agent_to_json(
    const agents::Agent& agent, const agents::User& user
);

}  // namespace ars::server
