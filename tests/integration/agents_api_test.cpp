// Agents through the API: made, changed, kept apart by versions.
#include "tests/integration/agents_api_fixture.hpp"

#include <atomic>
#include <thread>
#include <vector>

namespace ars::tests {
namespace {

TEST_F(AgentsApi, K1K2K3SubAgentsAreListedOnlyWhenAskedForAndAreReadBySlug) {
    start();
    EXPECT_EQ(listed("alice"), (std::set<std::string>{"default-chatbot", "main"}));
    EXPECT_EQ(
        listed("alice", "?include_subagents=true"),
        (std::set<std::string>{"default-chatbot", "general-purpose", "helper", "main"})
    );
    const json::value helper = get("alice", "/helper").json().at("agent");
    EXPECT_TRUE(helper.at("is_subagent").as_bool());
    EXPECT_EQ(text(helper, "backend_id"), "SubAgentBackend");
    EXPECT_EQ(get("alice", "/nobody").status, 404);
}

TEST_F(AgentsApi, K4K6APlainUserMakesAnAgentThatOnlyHeSees) {
    start();
    const HttpReply made = make("alice", {{"name", "Data Analyst!"}, {"description", "counts"}});
    ASSERT_EQ(made.status, 201) << made.body;
    const json::value agent = made.json().at("agent");
    EXPECT_EQ(text(agent, "slug"), "data-analyst");
    EXPECT_EQ(text(agent, "created_by"), "alice");
    EXPECT_EQ(text(agent, "effective_permission"), "manage");
    EXPECT_EQ(agent.at("version"), 1);
    EXPECT_EQ(
        json::serialize(agent.at("share_config")),
        R"({"version":2,"read_scope":{"access_level":"user","department_ids":[],"user_uids":["alice"]},)"
        R"("manage_scope":null})"
    );
    EXPECT_EQ(get("bob", "/data-analyst").status, 404);
    EXPECT_EQ(get("carol", "/data-analyst").status, 404) << "an admin is no superadmin";
    EXPECT_EQ(get("root", "/data-analyst").status, 200);
    EXPECT_EQ(call("bob", "PUT", "/data-analyst", {{"name", "x"}}).status, 404);
    EXPECT_EQ(call("bob", "DELETE", "/data-analyst").status, 404);
    // A second of that name gets the next slug; a slug that is asked for is not bent.
    EXPECT_EQ(
        text(make("bob", {{"name", "data analyst"}}).json().at("agent"), "slug"), "data-analyst-2"
    );
    const HttpReply taken = make("bob", {{"name", "x"}, {"slug", "data-analyst"}});
    EXPECT_EQ(taken.status, 409);
    EXPECT_EQ(code_of(taken), "slug_taken");
    for (const char* slug : {"backends", "default", "runs", "requests", "thread", "Upper", "a/b"}) {
        EXPECT_EQ(make("bob", {{"name", "x"}, {"slug", slug}}).status, 422) << slug;
    }
}

TEST_F(AgentsApi, K5TheBackendAndIsSubagentMustAgree) {
    start();
    const HttpReply both = make(
        "alice", {{"name", "finder"}, {"backend_id", "SubAgentBackend"}, {"is_subagent", true}}
    );
    ASSERT_EQ(both.status, 201) << both.body;
    EXPECT_TRUE(both.json().at("agent").at("is_subagent").as_bool());
    const HttpReply contradiction = make(
        "alice", {{"name", "finder"}, {"backend_id", "SubAgentBackend"}, {"is_subagent", false}}
    );
    EXPECT_EQ(contradiction.status, 422);
    EXPECT_NE(contradiction.body.find("is_subagent"), std::string::npos);
    const HttpReply changed = call("alice", "PUT", "/finder", {{"is_subagent", false}});
    EXPECT_EQ(changed.status, 422);
    const HttpReply unknown = make("alice", {{"name", "x"}, {"backend_id", "Robot"}});
    EXPECT_EQ(unknown.status, 404);
    EXPECT_EQ(code_of(unknown), "backend_not_found");
    EXPECT_EQ(make("alice", {{"name", "x"}, {"set_default", true}}).status, 422);
}

TEST_F(AgentsApi, K7K8BuiltInsAreSeededOnceAndKeepWhatPeopleMadeOfThem) {
    start();
    const json::value before = get("root", "/general-purpose").json().at("agent");
    EXPECT_EQ(before.at("version"), 1);
    EXPECT_FALSE(text(get("root", "/default").json().at("agent"), "description").empty());
    const HttpReply edited = call(
        "root",
        "PUT",
        "/general-purpose",
        {{"config_json", {{"context", {{"model", "demo:mine"}}}}}, {"description", ""}}
    );
    ASSERT_EQ(edited.status, 200) << edited.body;
    server_.kill();
    start_again();
    const json::value after = get("root", "/general-purpose").json().at("agent");
    EXPECT_EQ(text(after.at("config_json").at("context"), "model"), "demo:mine");
    EXPECT_EQ(text(after, "description"), text(before, "description")) << "filled in again";
    server_.kill();
    start_again();
    EXPECT_EQ(
        get("root", "/general-purpose").json().at("agent").at("version"), after.at("version")
    );
}

TEST_F(AgentsApi, K9ADelegatedManagerChangesAnAgentAndItsScopesWithinTheRules) {
    start();
    json::object share{
        {"version", 2},
        {"read_scope", {{"access_level", "user"}, {"user_uids", {"alice", "bob"}}}},
        {"manage_scope", {{"access_level", "user"}, {"user_uids", {"bob"}}}}
    };
    ASSERT_EQ(make("alice", {{"name", "ours"}, {"share_config", share}}).status, 201);
    EXPECT_EQ(call("bob", "PUT", "/ours", {{"description", "better"}}).status, 200);
    const HttpReply global = call(
        "bob",
        "PUT",
        "/ours",
        {{"share_config",
          {{"version", 2}, {"read_scope", {{"access_level", "global"}}}, {"manage_scope", nullptr}}}
        }
    );
    EXPECT_EQ(global.status, 422) << "K15: only admins share with everybody";
    share.at("manage_scope").as_object()["user_uids"] = json::array{"alice", "bob", "carol"};
    EXPECT_EQ(call("bob", "PUT", "/ours", {{"share_config", share}}).status, 422)
        << "K12: manage is wider than read";
    share.at("manage_scope").as_object()["user_uids"] = json::array{"alice"};
    EXPECT_EQ(call("bob", "PUT", "/ours", {{"share_config", share}}).status, 200);
    const HttpReply reader = call("bob", "PUT", "/ours", {{"description", "worse"}});
    EXPECT_EQ(reader.status, 403);
    EXPECT_EQ(code_of(reader), "agent_not_managed");
    EXPECT_EQ(get("bob", "/ours").status, 200);
    EXPECT_EQ(get("bob", "/ours/versions").status, 403);
    // What an admin shared with everybody a plain manager may go on changing.
    json::object wide{
        {"version", 2},
        {"read_scope", {{"access_level", "global"}}},
        {"manage_scope", {{"access_level", "user"}, {"user_uids", {"bob"}}}}
    };
    ASSERT_EQ(make("carol", {{"name", "wide"}, {"share_config", wide}}).status, 201);
    EXPECT_EQ(call("bob", "PUT", "/wide", {{"description", "x"}}).status, 200);
}

TEST_F(AgentsApi, K17WhatOnlyAdminsSetIsHiddenFromUsersAndSurvivesTheirChanges) {
    start();
    const json::object context{
        {"max_execution_steps", 7}, {"tool_approval_mode", "always_trust"}, {"model", "demo:a"}
    };
    ASSERT_EQ(
        make("alice", {{"name", "mine"}, {"config_json", {{"context", context}}}}).status, 201
    );
    const auto context_for = [this](const char* uid) {
        return get(uid, "/mine").json().at("agent").at("config_json").at("context").as_object();
    };
    EXPECT_FALSE(context_for("root").contains("max_execution_steps")) << "a user can't set it";
    ASSERT_EQ(call("root", "PUT", "/mine", {{"config_json", {{"context", context}}}}).status, 200);
    EXPECT_EQ(context_for("root").at("max_execution_steps"), 7);
    EXPECT_FALSE(context_for("alice").contains("max_execution_steps"));
    EXPECT_EQ(context_for("alice").at("model"), "demo:a");
    const json::object own{{"model", "demo:b"}, {"max_execution_steps", 300}};
    ASSERT_EQ(call("alice", "PUT", "/mine", {{"config_json", {{"context", own}}}}).status, 200);
    EXPECT_EQ(context_for("root").at("max_execution_steps"), 7) << "what an admin set binds";
    EXPECT_EQ(context_for("root").at("model"), "demo:b");
    ASSERT_EQ(call("alice", "PUT", "/mine", {{"config_json", nullptr}}).status, 200);
    EXPECT_EQ(context_for("root").at("max_execution_steps"), 7);
    EXPECT_FALSE(context_for("root").contains("model"));
    const json::value user_items =
        get("alice", "/backends/ChatbotAgent").json().at("configurable_items");
    const json::value admin_items =
        get("carol", "/backends/ChatbotAgent").json().at("configurable_items");
    EXPECT_FALSE(user_items.as_object().contains("policy"));
    EXPECT_TRUE(admin_items.at("policy").at("admin").as_bool());
    EXPECT_TRUE(user_items.as_object().contains("tools"));
}

TEST_F(AgentsApi, K38TheBackendsSayWhatCanBeSet) {
    start();
    EXPECT_EQ(get("alice", "/backends").json().at("backends").as_array().size(), 2U);
    const json::value chat = get("alice", "/backends/ChatbotAgent").json();
    const json::value sub = get("alice", "/backends/SubAgentBackend").json();
    EXPECT_EQ(text(chat, "type"), "agent_backend");
    const std::string all =
        json::serialize(chat.at("configurable_items").at("tools").at("options"));
    const std::string some =
        json::serialize(sub.at("configurable_items").at("tools").at("options"));
    for (const char* tool : {"ask_user_question", "\"task\""}) {
        EXPECT_NE(all.find(tool), std::string::npos) << tool;
        EXPECT_EQ(some.find(tool), std::string::npos) << tool;
    }
    EXPECT_FALSE(sub.at("configurable_items").as_object().contains("subagents"));
    EXPECT_EQ(
        json::serialize(chat.at("configurable_items").at("subagents").at("options")),
        R"(["general-purpose","helper"])"
    );
    EXPECT_EQ(get("alice", "/backends/Robot").status, 404);
}

TEST_F(AgentsApi, NamesThatNothingHasAreRefusedWithTheKnownOnes) {
    start();
    const auto refused = [this](json::object context) {
        const HttpReply reply =
            make("carol", {{"name", "x"}, {"config_json", {{"context", std::move(context)}}}});
        EXPECT_EQ(reply.status, 422);
        return reply.body;
    };
    EXPECT_NE(refused({{"tools", {"executee"}}}).find("did you mean"), std::string::npos);
    EXPECT_NE(refused({{"model", "nobody:x"}}).find("known: demo"), std::string::npos);
    EXPECT_NE(refused({{"policy", "lax"}}).find("unknown policy"), std::string::npos);
    EXPECT_NE(refused({{"mcps", {"web"}}}).find("unknown MCP server"), std::string::npos);
    EXPECT_NE(refused({{"skills", {"pdf"}}}).find("unknown skill"), std::string::npos);
    EXPECT_NE(refused({{"knowledges", {"kb"}}}).find("unknown knowledge"), std::string::npos);
    EXPECT_NE(refused({{"subagents", {"main"}}}).find("known: general-purpose"), std::string::npos);
    EXPECT_NE(refused({{"modle", "x"}}).find("modle"), std::string::npos);
    EXPECT_EQ(make("carol", {{"name", "x"}, {"colour", "red"}}).status, 422);
    EXPECT_FALSE(listed("carol").contains("x"));
}

TEST_F(AgentsApi, TwoEditorsDoNotOverwriteEachOther) {
    start();
    const HttpReply made = make("alice", {{"name", "doc"}});
    const std::string first = made.headers.at("etag");
    EXPECT_EQ(get("alice", "/doc").headers.at("etag"), first);
    const HttpReply one =
        call("alice", "PUT", "/doc", {{"description", "one"}}, {{"If-Match", first}});
    ASSERT_EQ(one.status, 200) << one.body;
    EXPECT_NE(one.headers.at("etag"), first);
    const HttpReply two =
        call("alice", "PUT", "/doc", {{"description", "two"}}, {{"If-Match", first}});
    EXPECT_EQ(two.status, 412);
    EXPECT_EQ(code_of(two), "agent_changed");
    EXPECT_EQ(call("alice", "DELETE", "/doc", {}, {{"If-Match", first}}).status, 412);
    EXPECT_EQ(text(get("alice", "/doc").json().at("agent"), "description"), "one");
    // Without If-Match each change holds, also those of other fields at the same time.
    std::vector<std::thread> editors;
    std::atomic<int> changed{0};
    for (const char* field : {"description", "name", "icon"}) {
        for (int i = 0; i < 5; ++i) {
            editors.emplace_back([&, field, i] {
                const json::object body{{field, field + std::to_string(i)}};
                changed += call("alice", "PUT", "/doc", body).status == 200 ? 1 : 0;
            });
        }
    }
    for (std::thread& editor : editors) {
        editor.join();
    }
    EXPECT_EQ(changed, 15);
    const json::value after = get("alice", "/doc").json().at("agent");
    for (const char* field : {"description", "name", "icon"}) {
        EXPECT_EQ(text(after, field).rfind(field, 0), 0U) << json::serialize(after);
    }
    EXPECT_EQ(call("alice", "DELETE", "/doc", {}, {{"If-Match", "*"}}).status, 200);
    EXPECT_EQ(get("alice", "/doc").status, 404);
}

TEST_F(AgentsApi, EachChangeIsAVersionThatCanBeRolledBackToAndThatRunsName) {
    start();
    ASSERT_EQ(make("alice", {{"name", "v"}, {"description", "one"}}).status, 201);
    ASSERT_EQ(call("alice", "PUT", "/v", {{"description", "two"}}).status, 200);
    EXPECT_EQ(
        call("alice", "PUT", "/v", {{"description", "two"}}).json().at("agent").at("version"), 2
    ) << "no change, no version";
    const json::object run = server_.submit("v", "hello", as("alice"));
    const HttpReply back = call("alice", "POST", "/v/rollback", {{"version", 1}});
    ASSERT_EQ(back.status, 200) << back.body;
    EXPECT_EQ(text(back.json().at("agent"), "description"), "one");
    EXPECT_EQ(back.json().at("agent").at("version"), 3);
    server_.kill();
    start_again();
    const json::array versions = get("alice", "/v/versions").json().at("versions").as_array();
    ASSERT_EQ(versions.size(), 3U);
    EXPECT_EQ(text(versions[0], "action"), "rolled_back");
    EXPECT_EQ(versions[0].at("restored_from"), 1);
    EXPECT_EQ(text(versions[2], "updated_by"), "alice");
    EXPECT_EQ(versions[0].at("config_digest"), versions[2].at("config_digest"));
    const json::value shown =
        http(server_.port(), "GET", "/api/agent/runs/" + text(run, "run_id"), {}, as("alice"))
            .json()
            .at("run");
    EXPECT_EQ(shown.at("agent_version"), 2);
    EXPECT_EQ(shown.at("config_digest"), versions[1].at("config_digest"));
    const json::value two = get("alice", "/v/versions/2").json().at("version");
    EXPECT_EQ(text(two.at("definition"), "description"), "two");
    for (const char* missing : {"0", "4", "x", "99999999999999999999"}) {
        EXPECT_EQ(get("alice", "/v/versions/" + std::string(missing)).status, 404) << missing;
    }
    EXPECT_EQ(call("alice", "POST", "/v/rollback", {{"version", 9}}).status, 404);
    // Deleted and made again it is another agent: nobody reads what it was.
    ASSERT_EQ(call("alice", "DELETE", "/v").status, 200);
    ASSERT_EQ(make("bob", {{"name", "v"}}).status, 201);
    EXPECT_EQ(call("bob", "POST", "/v/rollback", {{"version", 2}}).status, 404);
}

TEST_F(AgentsApi, TheDefaultAgentStaysTheDefaultAndReadableByAll) {
    start();
    EXPECT_EQ(call("root", "POST", "/default-chatbot/set_default").status, 200);
    EXPECT_EQ(call("alice", "POST", "/default-chatbot/set_default").status, 403);
    EXPECT_EQ(call("root", "POST", "/main/set_default").status, 422);
    EXPECT_EQ(call("root", "POST", "/helper/set_default").status, 422);
    EXPECT_EQ(call("root", "POST", "/nobody/set_default").status, 404);
    const HttpReply deleted = call("root", "DELETE", "/default-chatbot");
    EXPECT_EQ(deleted.status, 409);
    EXPECT_EQ(code_of(deleted), "agent_is_default");
    const json::object hidden{
        {"version", 2}, {"read_scope", {{"access_level", "user"}, {"user_uids", {"root"}}}}
    };
    EXPECT_EQ(call("root", "PUT", "/default-chatbot", {{"share_config", hidden}}).status, 422);
    EXPECT_EQ(call("root", "PUT", "/default-chatbot", {{"name", "Ours"}}).status, 200);
    EXPECT_EQ(text(get("alice", "/default").json().at("agent"), "name"), "Ours");
}

}  // namespace
}  // namespace ars::tests
