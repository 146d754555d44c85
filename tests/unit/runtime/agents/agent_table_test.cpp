#include "runtime/agents/agent_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ars::agents {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const User kAlice{"alice", UserRole::user, "research"};

Agent agent(std::string slug, std::string_view backend, std::string name = "") {
    Agent out;
    out.slug = slug;
    out.name = name.empty() ? slug : std::move(name);
    out.backend_id = backend;
    out.is_subagent = backend == kSubAgentBackend;
    out.source = "agents/" + slug + ".yaml";
    out.share_config.read_scope = AccessScope{};
    return out;
}

Agent private_to(Agent agent, std::string uid) {
    agent.share_config.read_scope = AccessScope{AccessLevel::user, {}, {std::move(uid)}};
    return agent;
}

std::vector<std::string> slugs(const std::vector<AgentPtr>& agents) {
    std::vector<std::string> out;
    for (const AgentPtr& one : agents) {
        out.push_back(one->slug);
    }
    return out;
}

TEST(AgentTable, K1K2SubAgentsAreListedOnlyWhenAskedForAndTheDefaultComesFirst) {
    AgentTable table = AgentTable::with_built_ins();
    table.put(agent("archivist", kChatbotBackend));
    table.put(agent("coder", kSubAgentBackend));
    EXPECT_THAT(slugs(table.list(kAlice, false)), ElementsAre("default-chatbot", "archivist"));
    EXPECT_THAT(
        slugs(table.list(kAlice, true)),
        ElementsAre("default-chatbot", "archivist", "coder", "general-purpose")
    );
}

TEST(AgentTable, K3FindReturnsSubAgentsButNoInvisibleAgent) {
    AgentTable table = AgentTable::with_built_ins();
    table.put(agent("coder", kSubAgentBackend));
    table.put(private_to(agent("secret", kChatbotBackend), "bob"));
    ASSERT_NE(table.find("coder", kAlice), nullptr);
    EXPECT_TRUE(table.find("coder", kAlice)->is_subagent);
    EXPECT_EQ(table.find("secret", kAlice), nullptr);
    EXPECT_EQ(table.find("missing", kAlice), nullptr);
    EXPECT_NE(table.find("secret", User{"bob", UserRole::user, ""}), nullptr);
}

TEST(AgentTable, K7TheBuiltInsHaveADescriptionAndAnEmptyContext) {
    const AgentTable table = AgentTable::with_built_ins();
    for (const std::string_view slug : {kDefaultAgent, kGeneralPurpose}) {
        const AgentPtr found = table.find(slug, kAlice);
        ASSERT_NE(found, nullptr);
        EXPECT_FALSE(found->description.empty());
        EXPECT_TRUE(found->config_json.at("context").as_object().empty());
        EXPECT_TRUE(found->is_builtin);
        EXPECT_EQ(found->is_default, slug == kDefaultAgent);
    }
}

TEST(AgentTable, WhoHoldsAnAgentKeepsItAsItWas) {
    AgentTable table = AgentTable::with_built_ins();
    const AgentPtr before = table.find("default-chatbot", kAlice);
    table.put(agent("default-chatbot", kChatbotBackend, "Mine"));
    EXPECT_EQ(table.find("default-chatbot", kAlice)->name, "Mine");
    EXPECT_EQ(before->name, "Default chatbot");
    table.erase("default-chatbot");
    table.erase("default-chatbot");
    EXPECT_EQ(table.find("default-chatbot", kAlice), nullptr);
    EXPECT_EQ(before->name, "Default chatbot");
}

TEST(AgentTable, AMissingEmptyOrBlankListAllowsEveryVisibleSubAgentOrderedByName) {
    AgentTable table = AgentTable::with_built_ins();
    table.put(agent("zz", kSubAgentBackend, "Analyst"));
    table.put(private_to(agent("hidden", kSubAgentBackend), "bob"));
    table.put(agent("main", kChatbotBackend));
    AgentContext context;
    EXPECT_THAT(
        slugs(table.allowed_subagents(context, kAlice)), ElementsAre("zz", "general-purpose")
    );
    context.subagents.emplace();
    EXPECT_THAT(
        slugs(table.allowed_subagents(context, kAlice)), ElementsAre("zz", "general-purpose")
    );
    context.subagents = {"", "  "};
    EXPECT_THAT(
        slugs(table.allowed_subagents(context, kAlice)), ElementsAre("zz", "general-purpose")
    );
}

TEST(AgentTable, K19AListAllowsWhatItNamesInFirstSeenOrderAndDropsTheRest) {
    AgentTable table = AgentTable::with_built_ins();
    table.put(agent("a", kSubAgentBackend));
    table.put(agent("b", kSubAgentBackend));
    table.put(agent("main", kChatbotBackend));
    table.put(private_to(agent("hidden", kSubAgentBackend), "bob"));
    AgentContext context;
    context.subagents = {" b ", "missing", "a", "b", "main", "hidden"};
    EXPECT_THAT(slugs(table.allowed_subagents(context, kAlice)), ElementsAre("b", "a"));
    context.subagents = {"missing"};
    EXPECT_THAT(table.allowed_subagents(context, kAlice), IsEmpty());
}

}  // namespace
}  // namespace ars::agents
