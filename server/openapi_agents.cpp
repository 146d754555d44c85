// Agents, their kinds and their versions.
#include "server/dto_agents.hpp"
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
         {"permission_locked", documented(boolean(), "Its file decides about it.")},
         {"version", whole()},
         {"config_digest", nullable(text())},
         {"source", nullable(text("Its file, for who manages it."))},
         {"capabilities", list(text())},
         {"metadata", open_object()}}
    );
}

std::vector<Member> version_members() {
    return {
        {"version", whole()},
        {"action",
         choice({"created", "updated", "rolled_back", "deleted", "seeded", "from_file", "file_gone"}
         )},
        {"updated_by", nullable(text())},
        {"updated_at", nullable(time())},
        {"config_digest", nullable(text())},
        {"source", nullable(text())},
        {"restored_from", nullable(whole("The version that a rollback took."))},
    };
}

Schema version_with_definition() {
    std::vector<Member> members = version_members();
    members.push_back(
        {"definition", nullable(open_object("As in a file; null where it was deleted."))}
    );
    return object(members);
}

Schema backend() {
    const Schema item = object(
        {{"kind", text("What to show for it: prompt, llm, tools, value, ...")},
         {"admin", documented(boolean(), "Only admins see and set it.")},
         {"type?", anything("Of JSON Schema.")},
         {"description?", text()},
         {"default", anything()},
         {"enum?", list(text())},
         {"minimum?", anything()},
         {"maximum?", anything()},
         {"options", list(text())}}
    );
    return object(
        {{"backend_id", text()},
         {"type", constant("agent_backend")},
         {"name", text()},
         {"description", text()},
         {"metadata", open_object()},
         {"configurable_items", map(item)},
         {"capabilities", list(text())}}
    );
}

void add_changes(std::vector<Operation>& out) {
    constexpr std::string_view kIfMatch = "The ETag of the agent as you know it; else 412.";
    const Schema one = object({{"agent", ref("Agent")}});
    out.push_back(Operation(Method::post, "/api/agent", "createAgent", "Makes an agent of yours.")
                      .body(ref("AgentRequest"))
                      .answers(201, one)
                      .fails({404, 409, 503}));
    out.push_back(
        Operation(Method::put, "/api/agent/{slug}", "changeAgent", "What is given goes over it.")
            .path("slug", "The agent.")
            .header("If-Match", kIfMatch)
            .body(ref("AgentChange"))
            .answers(200, one)
            .fails({404, 409, 412, 503})
    );
    out.push_back(
        Operation(Method::del, "/api/agent/{slug}", "deleteAgent", "Runs go on with it.")
            .path("slug", "The agent.")
            .header("If-Match", kIfMatch)
            .answers(
                200,
                object({{"success", {{"const", true}}}, {"note?", text("What brings it back.")}})
            )
            .fails({404, 409, 412, 503})
    );
    out.push_back(Operation(
                      Method::post,
                      "/api/agent/{slug}/set_default",
                      "setDefaultAgent",
                      "For admins: it is fixed, so this confirms it."
    )
                      .path("slug", "The agent.")
                      .answers(200, one)
                      .fails({404, 422}));
}

void add_versions(std::vector<Operation>& out) {
    out.push_back(
        Operation(Method::get, "/api/agent/{slug}/versions", "listAgentVersions", "Newest first.")
            .path("slug", "The agent.")
            .answers(200, object({{"versions", list(object(version_members()))}}))
            .fails({404})
    );
    out.push_back(Operation(
                      Method::get,
                      "/api/agent/{slug}/versions/{version}",
                      "getAgentVersion",
                      "With its definition."
    )
                      .path("slug", "The agent.")
                      .path("version", "Its number.")
                      .answers(200, object({{"version", version_with_definition()}}))
                      .fails({404}));
    out.push_back(Operation(
                      Method::post,
                      "/api/agent/{slug}/rollback",
                      "rollBackAgent",
                      "Makes an old definition the newest."
    )
                      .path("slug", "The agent.")
                      .header("If-Match", "The ETag of the agent as you know it; else 412.")
                      .body(ref("AgentRollback"))
                      .answers(200, object({{"agent", ref("Agent")}}))
                      .fails({404, 409, 412, 503}));
}

void add_backends(std::vector<Operation>& out) {
    out.push_back(
        Operation(Method::get, "/api/agent/backends", "listBackends", "The kinds of agents.")
            .answers(200, object({{"backends", list(ref("Backend"))}}))
    );
    out.push_back(
        Operation(
            Method::get, "/api/agent/backends/{id}", "getBackend", "What can be set about a kind."
        )
            .path("id", "ChatbotAgent or SubAgentBackend.")
            .answers(200, ref("Backend"))
            .fails({404})
    );
}

}  // namespace

Part agents_part() {
    Part part{"agents", "Main agents and sub-agents.", {}, {}};
    part.schemas = {
        {"Agent", agent()},
        {"AgentRequest", new_agent_schema()},
        {"AgentChange", agent_change_schema()},
        {"AgentRollback", rollback_fields().schema()},
        {"Backend", backend()},
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
            .query("include_subagents", boolean(), "Sub-agents too.")
            .answers(200, object({{"agents", list(ref("Agent"))}}))
            .fails({422})
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
    add_changes(part.operations);
    add_versions(part.operations);
    add_backends(part.operations);
    return part;
}

}  // namespace ars::server::openapi
