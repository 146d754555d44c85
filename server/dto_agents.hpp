// The JSON of agents: what is shown of one, and the bodies that make and change one.
#pragma once

#include "base/fields.hpp"
#include "runtime/agents/agent_table.hpp"
#include "runtime/agents/agent_version.hpp"
#include "server/http_message.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

namespace ars::server {

// As `user` may see it: a plain user sees no admin fields.
[[nodiscard]] boost::json::object agent_to_json(
    const agents::Agent& agent, const agents::User& user
);
// {"agent": {...}} with the ETag of its version.
[[nodiscard]] HttpResponse agent_response(
    const agents::Agent& agent, const agents::User& user, int status = 200
);
// Without definition, or with it as `user` may see it.
[[nodiscard]] boost::json::object version_to_json(const agents::AgentVersion& version);
[[nodiscard]] boost::json::object definition_to_json(
    const agents::AgentVersion& version, const agents::User& user
);

// What a body says of an agent: the keys of a definition that it has, as they stand there, null for
// those that go back to their default.
struct AgentBody {
    boost::json::object given;
    std::optional<std::string> slug;  // POST only
    bool set_default = false;         // POST only
};
[[nodiscard]] std::expected<AgentBody, HttpResponse> read_new_agent(const HttpRequest& request);
[[nodiscard]] std::expected<AgentBody, HttpResponse> read_agent_change(const HttpRequest& request);
[[nodiscard]] boost::json::object new_agent_schema();
[[nodiscard]] boost::json::object agent_change_schema();

struct RollbackBody {
    std::uint64_t version = 0;
};
[[nodiscard]] const base::Fields<RollbackBody>& rollback_fields();

// `definition` with what was given put over it. What only admins may set stays as it is when `user`
// is none.
[[nodiscard]] boost::json::object changed_definition(
    boost::json::object definition, const boost::json::object& given, const agents::User& user
);

// Names the version. `header` is If-Match: one, a list of them, or "*".
[[nodiscard]] std::string etag_of(const agents::Agent& agent);
[[nodiscard]] bool matches_etag(std::string_view header, const agents::Agent& agent);

}  // namespace ars::server
