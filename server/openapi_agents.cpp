// Agents.
#include "server/openapi.hpp"

namespace ars::server::openapi {

namespace {

Schema agent() {
    return object(
        {{"id", text()},
         {"slug", text()},
         {"agent_id", text("The slug.")},
         {"backend_id", choice({"ChatbotAgent", "SubAgentBackend"})},
         {"name", text()},
         {"description", text()},
         {"icon", nullable(text())},
         {"pics", list(text())},
         {"config_json", open_object("As it was saved, without what the caller's role hides.")},
         {"share_config", ref("ShareConfig")},
         {"is_default", boolean()},
         {"is_subagent", boolean()},
         {"created_by", nullable(text())},
         {"updated_by", nullable(text())},
         {"created_at", nullable(time())},
         {"updated_at", nullable(time())},
         {"can_manage", boolean()},
         {"effective_permission", choice({"none", "read", "manage"})},
         {"is_builtin", boolean()},
         {"permission_locked", boolean()},
         {"capabilities", list(text())},
         {"metadata", open_object()}}
    );
}

}  // namespace

Part agents_part() {
    Part part{"agents", "Main agents and sub-agents.", {}, {}};
    part.schemas = {
        {"Agent", agent()},
        {"ShareConfig",
         object(
             {{"version", {{"const", 2}}},
              {"read_scope", nullable(ref("AccessScope"))},
              {"manage_scope", nullable(ref("AccessScope"))}}
         )},
        {"AccessScope",
         object(
             {{"access_level", choice({"global", "department", "user"})},
              {"department_ids", list(text())},
              {"user_uids", list(text())}}
         )},
    };
    part.operations.push_back(
        Operation(Method::get, "/api/agent", "listAgents", "The agents you may call.")
            .query("include_subagents", text(), "true: sub-agents too.")
            .answers(200, object({{"agents", list(ref("Agent"))}}))
    );
    part.operations.push_back(
        Operation(Method::get, "/api/agent/default", "getDefaultAgent", "The default agent.")
            .answers(200, object({{"agent", ref("Agent")}}))
            .fails({404})
    );
    part.operations.push_back(Operation(Method::get, "/api/agent/{slug}", "getAgent", "One agent.")
                                  .path("slug", "Its slug.")
                                  .answers(200, object({{"agent", ref("Agent")}}))
                                  .fails({404}));
    return part;
}

}  // namespace ars::server::openapi
