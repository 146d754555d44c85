#include "runtime/agents/agent_file.hpp"

#include "base/digest.hpp"

#include <boost/json/serialize.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

namespace ars::agents {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const KnownNames kKnown{
    .tools = {"execute", "read_file", "write_file"},
    .providers = {"main", "demo"},
    .policies = {"default"},
    .skills = {"s1"},
    .knowledges = {"handbook"},
};

struct Loaded {
    Agent agent;
    std::vector<std::string> faults;  // as printed, without the path of the file
};

Loaded load(std::string_view yaml) {
    const std::string path = ::testing::TempDir() + base::random_uuid() + ".yaml";
    std::ofstream(path) << yaml;
    auto file = load_agent_file(path, kKnown);
    std::remove(path.c_str());
    Loaded out;
    if (!file) {
        out.faults.push_back(file.error().message);
        return out;
    }
    out.agent = file->agent;
    for (const auto& fault : file->faults) {
        out.faults.push_back(file->document.describe(fault).substr(path.size() + 1));
    }
    return out;
}

TEST(AgentFile, AFullFileBecomesAnAgent) {
    const Loaded loaded = load(R"(slug: researcher
name: Researcher
description: Finds and checks facts.
backend_id: SubAgentBackend
is_subagent: true
lock: true
share_config: {version: 2, read_scope: {access_level: global}, manage_scope: null}
config_json:
  context:
    system_prompt: "Be exact."
    model: "main:gpt-x"
    tools: [execute, read_file, execute]
    skills: []
    mcps: []
    knowledges: [handbook]
    max_execution_steps: 30
    policy: default
    tool_approval_mode: always_trust
    summary_threshold: 200
)");
    EXPECT_THAT(loaded.faults, IsEmpty());
    const Agent& agent = loaded.agent;
    EXPECT_EQ(agent.slug, "researcher");
    EXPECT_TRUE(agent.is_subagent);
    EXPECT_EQ(agent.context.model, "main:gpt-x");
    EXPECT_THAT(*agent.context.tools, ElementsAre("execute", "read_file"));
    EXPECT_THAT(*agent.context.skills, IsEmpty());
    EXPECT_THAT(*agent.context.knowledges, ElementsAre("handbook"));
    EXPECT_FALSE(agent.context.subagents.has_value());
    EXPECT_EQ(agent.context.max_execution_steps, 30U);
    EXPECT_EQ(agent.context.tool_approval_mode, ApprovalMode::always_trust);
    EXPECT_EQ(agent.context.summary_threshold, 200U);
    EXPECT_EQ(agent.config_json.at("context").as_object().at("tools").as_array().size(), 3U)
        << "kept as written";
}

TEST(AgentFile, OnlyTheSlugIsRequired) {
    const Loaded loaded = load("slug: helper\n");
    EXPECT_THAT(loaded.faults, IsEmpty());
    EXPECT_EQ(loaded.agent.name, "helper");
    EXPECT_EQ(loaded.agent.backend_id, kChatbotBackend);
    EXPECT_FALSE(loaded.agent.is_subagent);
    EXPECT_FALSE(loaded.agent.context.tools.has_value());
    EXPECT_EQ(loaded.agent.share_config.read_scope->level, AccessLevel::global);
    EXPECT_TRUE(loaded.agent.config_json.contains("context"));
    EXPECT_THAT(load("name: x\n").faults, ElementsAre("1: slug: is missing"));
}

TEST(AgentFile, EveryFaultIsReportedAtOnceWithLineKeyAndRemedy) {
    EXPECT_THAT(
        load(R"(slug: Bad Slug
backend_id: SubAgent
config_json:
  context:
    modle: main:x
    model: other:gpt
    tools: [exec, read_file]
    policy: strict
    max_execution_steps: 0
)")
            .faults,
        ElementsAre(
            HasSubstr("1: slug: \"Bad Slug\" is not a slug"),
            HasSubstr(
                "2: backend_id: must be one of ChatbotAgent and SubAgentBackend, found \"SubAgent\""
            ),
            HasSubstr("9: config_json.context.max_execution_steps: must be between 1 and"),
            "5: config_json.context.modle: unknown key; did you mean \"model\"?",
            "6: config_json.context.model: unknown provider \"other\"; known: main and demo",
            "7: config_json.context.tools[0]: unknown tool \"exec\"; known: execute, read_file and "
            "write_file",
            "8: config_json.context.policy: unknown policy \"strict\"; known: default"
        )
    );
}

TEST(AgentFile, K5AContradictingIsSubagentNamesTheKey) {
    EXPECT_THAT(
        load("slug: a\nbackend_id: SubAgentBackend\nis_subagent: false\n").faults,
        ElementsAre(
            HasSubstr("3: is_subagent: is_subagent must be true for backend_id SubAgentBackend")
        )
    );
    EXPECT_THAT(
        load("slug: a\nis_subagent: true\n").faults,
        ElementsAre(HasSubstr("is_subagent must be false for backend_id ChatbotAgent"))
    );
}

TEST(AgentFile, ASubAgentMayNotNameSubAgents) {
    EXPECT_THAT(
        load("slug: a\nbackend_id: SubAgentBackend\nconfig_json: {context: {subagents: []}}\n")
            .faults,
        ElementsAre(
            "3: config_json.context.subagents: a sub-agent can't call sub-agents; remove the key"
        )
    );
    EXPECT_THAT(
        load("slug: a\nbackend_id: SubAgentBackend\nconfig_json: {context: {subagents: null}}\n")
            .faults,
        IsEmpty()
    );
}

TEST(AgentFile, TheDefaultAgentStaysAGloballyReadableMainAgent) {
    EXPECT_THAT(
        load("slug: default-chatbot\nbackend_id: SubAgentBackend\n"
             "share_config: {version: 2, read_scope: {access_level: user, user_uids: [bob]}}\n")
            .faults,
        ElementsAre(
            HasSubstr("the default agent can't be a sub-agent"),
            HasSubstr("the default agent must be readable by everybody")
        )
    );
    EXPECT_THAT(
        load("slug: general-purpose\n").faults, ElementsAre(HasSubstr("the built-in sub-agent"))
    );
}

TEST(AgentFile, AModelSpecWithoutProviderAndAnUnlistedPreloadedSkillAreFaults) {
    EXPECT_THAT(
        load("slug: a\nconfig_json: {context: {model: gpt-x, skills: [s1], preload_skills: [s2]}}\n"
        )
            .faults,
        ElementsAre(
            HasSubstr("model: \"gpt-x\" is not a model spec; write <provider>:<model>; providers: "
                      "main and demo"),
            HasSubstr("preload_skills[0]: \"s2\" is not among `skills`")
        )
    );
}

TEST(AgentFile, NamesThatNothingHasAreRefusedWithTheKnownOnes) {
    EXPECT_THAT(
        load("slug: a\nconfig_json:\n  context:\n    skills: [s11]\n    mcps: [web]\n"
             "    knowledges: [book]\n")
            .faults,
        ElementsAre(
            "5: config_json.context.mcps[0]: unknown MCP server \"web\"; known: none",
            "4: config_json.context.skills[0]: unknown skill \"s11\"; did you mean \"s1\"? known: "
            "s1",
            HasSubstr("unknown knowledge base \"book\"; known: handbook")
        )
    );
}

TEST(AgentFile, AToolThatIsNoTextIsOneFault) {
    EXPECT_THAT(
        load("slug: a\nconfig_json: {context: {tools: [5, exceute]}}\n").faults,
        ElementsAre(
            HasSubstr("tools[0]: must be a text, found the number 5"),
            HasSubstr("tools[1]: unknown tool \"exceute\"; did you mean \"execute\"?")
        )
    );
}

TEST(AgentFile, BrokenYamlAndOtherShapesAreFaultsToo) {
    EXPECT_THAT(load("slug: a\nslug: b\n").faults, ElementsAre(HasSubstr("stands twice")));
    EXPECT_THAT(load("[a]").faults, ElementsAre("1: must be an object, found a list"));
}

TEST(AgentContextFields, AStoredContextComesBackAsItWas) {
    AgentContext context;
    context.system_prompt = "p";
    context.tools = {"execute"};
    context.tool_approval_mode = ApprovalMode::ask;
    context.subagents.emplace();
    const auto stored = context_to_json(context);
    EXPECT_EQ(stored.at("tool_approval_mode").as_string(), "default");
    EXPECT_TRUE(stored.at("skills").is_null());
    const auto read = parse_context(stored);
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(boost::json::serialize(context_to_json(*read)), boost::json::serialize(stored));
    EXPECT_TRUE(read->subagents.has_value());
    EXPECT_FALSE(read->skills.has_value());
    EXPECT_THAT(
        parse_context({{"tools", "all"}}).error().message,
        HasSubstr("context.tools: must be a list")
    );
}

}  // namespace
}  // namespace ars::agents
