#include "server/config.hpp"

#include "base/clock.hpp"
#include "base/digest.hpp"
#include "server/config_files.hpp"
#include "tests/unit/server/config_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ars::server {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ConfigTest : public ConfigFixture {};

TEST_F(ConfigTest, EveryKeyHasADefaultButTheModelAndOneProvider) {
    const LoadedConfig loaded = good(kModels);
    const Config& config = loaded.config;
    EXPECT_EQ(config.server.listen, "127.0.0.1:5050");
    EXPECT_EQ(config.data_dir, "/var/lib/ars");
    EXPECT_EQ(config.mounts.users, "/var/lib/ars/users");
    EXPECT_EQ(config.sandbox.require, sandbox::Tier::namespaces);
    EXPECT_EQ(config.sandbox.tool_approval_mode, agents::ApprovalMode::ask);
    EXPECT_EQ(config.sandbox.idle_release, 10min);
    EXPECT_EQ(config.runs.max_concurrent, 256U);
    EXPECT_FALSE(config.runs.children_outlive_root);
    EXPECT_EQ(config.store.max_size, std::uint64_t{64} << 30U);
    EXPECT_TRUE(loaded.agents.empty());
    EXPECT_EQ(loaded.local_user().uid, "local");
    EXPECT_THAT(faults("{}"), ElementsAre("appliance.yaml:1: models: is missing"));
    EXPECT_THAT(
        faults("models: {providers: {}}"),
        ElementsAre(
            "appliance.yaml:1: models.default: is missing",
            "appliance.yaml:1: models.providers: must not be empty"
        )
    );
}

TEST_F(ConfigTest, TheWholeFileOfTheDesignIsRead) {
    set("ARS_TEST_KEY", kKey);
    write("agents/researcher.yaml", "slug: researcher\nbackend_id: SubAgentBackend\n");
    write("agents/main.yaml", "slug: main\nconfig_json: {context: {subagents: [researcher]}}\n");
    const LoadedConfig loaded = good(R"(server: {listen: "0.0.0.0:5050"}
data_dir: data
mounts: {users: /srv/ars/users}
agents: ["agents/*.yaml"]
models:
  default: "main:gpt-x"
  providers:
    main: {type: openai, base_url: "http://127.0.0.1:9000/v1", api_key_env: ARS_TEST_KEY, retries: 5, idle_timeout: 3s}
    demo: {type: scripted, scripts: "scripts/*.yaml"}
users:    [{uid: alice, role: admin, department: research}]
api_keys: [{name: orchestrator, uid: alice, key_env: ARS_TEST_KEY, expires: "2999-01-31"}]
sandbox:  {require: landlock, idle_release: 5m, tool_approval_mode: always_trust}
runs:     {max_concurrent: 8, max_children: 9, children_outlive_root: true, max_steps: 10, timeout: 2h, stop_grace: 9s}
store:    {max_size: 1GiB}
)");
    const Config& config = loaded.config;
    EXPECT_EQ(config.data_dir, dir_ + "/data") << "relative to the file";
    EXPECT_EQ(config.mounts.users, "/srv/ars/users");
    EXPECT_EQ(config.models.providers.at("main").api_key, kKey);
    EXPECT_EQ(config.models.providers.at("main").retries, 5U);
    EXPECT_EQ(config.models.providers.at("main").idle_timeout, 3s);
    ASSERT_NE(config.models.providers.at("demo").script_book, nullptr);
    EXPECT_EQ(config.models.providers.at("demo").script_book->scripts().size(), 1U);
    EXPECT_EQ(config.sandbox.require, sandbox::Tier::landlock);
    EXPECT_TRUE(config.runs.children_outlive_root);
    EXPECT_EQ(config.runs.stop_grace, 9s);
    EXPECT_EQ(config.runs.timeout, 2h);
    EXPECT_EQ(config.store.max_size, std::uint64_t{1} << 30U);
    EXPECT_EQ(loaded.agents.size(), 2U);
    ASSERT_EQ(loaded.keys.size(), 1U);
    EXPECT_EQ(loaded.keys[0].sha256, base::sha256_hex(kKey)) << "only the digest is kept";
    EXPECT_EQ(loaded.keys[0].uid, "alice");
    EXPECT_GT(loaded.keys[0].expires_ms, base::now_ms());
    EXPECT_EQ(loaded.local_user().uid, "alice");
    ASSERT_EQ(loaded.declared_people().users.size(), 1U);
    EXPECT_EQ(loaded.declared_people().users[0].department, "research");
    EXPECT_THAT(loaded.secret_files, ElementsAre(path()));
    EXPECT_THAT(loaded.notes, IsEmpty());
}

TEST_F(ConfigTest, FaultsOfAllFilesAreReportedAtOnceWithFileLineKeyAndRemedy) {
    write("agents/a.yaml", "slug: a\nconfig_json:\n  context:\n    modle: x\n");
    write("agents/b.yaml", "slug: b\nbackend_id: SubAgentBackend\nis_subagent: false\n");
    write("agents/c.yaml", "slug: [\n");
    write("scripts/bad.yaml", "agent: a\nturns:\n  - txt: x\n");
    const auto found = faults(std::string(kModels) + "runs: {max_childs: 3}\nsever: {}\n");
    EXPECT_THAT(
        found,
        ElementsAre(
            "appliance.yaml:5: runs.max_childs: unknown key; did you mean \"max_children\"?",
            "appliance.yaml:6: sever: unknown key; did you mean \"server\"?",
            "scripts/bad.yaml:3: turns[0].txt: unknown key; did you mean \"text\"?",
            "agents/a.yaml:4: config_json.context.modle: unknown key; did you mean \"model\"?",
            HasSubstr("agents/b.yaml:3: is_subagent: is_subagent must be true"),
            HasSubstr("agents/c.yaml:2: not valid YAML")
        )
    );
}

TEST_F(ConfigTest, EnvironmentVariablesAreExpandedInTheirPlacesOnly) {
    set("ARS_TEST_DIR", "/data/here");
    const LoadedConfig loaded = good(R"(data_dir: "${ARS_TEST_DIR}/ars"
mounts: {users: "${ARS_TEST_UNSET:-/home/of}/users"}
server: {listen: "127.0.0.1:${ARS_TEST_UNSET:-6060}"}
models:
  default: "${ARS_TEST_UNSET:-demo}:scripted"
  providers:
    demo: {type: scripted, scripts: "scripts/*.yaml"}
    web: {type: openai, base_url: "${ARS_TEST_UNSET:-https://api.example/v1}"}
)");
    EXPECT_EQ(loaded.config.data_dir, "/data/here/ars");
    EXPECT_EQ(loaded.config.mounts.users, "/home/of/users");
    EXPECT_EQ(loaded.config.server.listen, "127.0.0.1:6060");
    EXPECT_EQ(loaded.config.models.default_spec, "demo:scripted");
    EXPECT_EQ(loaded.config.models.providers.at("web").base_url, "https://api.example/v1");
    EXPECT_THAT(
        faults(std::string(kModels) + "data_dir: \"${ARS_TEST_UNSET}\"\n"),
        ElementsAre(
            HasSubstr("appliance.yaml:5: data_dir: the environment variable ARS_TEST_UNSET is not "
                      "set; export it"),
            HasSubstr("data_dir: must not be empty")
        )
    );
    EXPECT_THAT(
        faults(std::string(kModels) + "users: [{uid: \"${ARS_TEST_DIR}\"}]\n"),
        ElementsAre(HasSubstr("users[0].uid: environment variables are not expanded here"))
    );
    EXPECT_THAT(
        faults(std::string(kModels) + "data_dir: \"${ARS_TEST_DIR\"\n"),
        ElementsAre(HasSubstr("is not closed"), HasSubstr("must not be empty"))
    );
}

TEST_F(ConfigTest, AnAddressThatIsNotLoopbackNeedsKeys) {
    const std::string open = std::string(kModels) + "server: {listen: \"0.0.0.0:5050\"}\n";
    EXPECT_THAT(
        faults(open),
        ElementsAre(
            HasSubstr("appliance.yaml:5: server.listen: \"0.0.0.0:5050\" is not a loopback address")
        )
    );
    const std::string digest = base::sha256_hex(kKey);
    EXPECT_THAT(
        faults(open + "users: [{uid: a}]\napi_keys: [{name: k, uid: a, sha256: " + digest + "}]\n"),
        IsEmpty()
    );
    EXPECT_THAT(
        faults(std::string(kModels) + "server: {listen: nowhere}\n"),
        ElementsAre(HasSubstr("server.listen: "))
    );
    EXPECT_TRUE(check_listen("[::1]:80", false).has_value());
    EXPECT_FALSE(check_listen("[::]:80", false).has_value());
}

TEST_F(ConfigTest, ContradictionsOfModelsAreFaults) {
    EXPECT_THAT(
        faults(R"(models:
  default: "main:gpt"
  providers:
    Bad: {type: scripted, scripts: "scripts/*.yaml"}
    demo: {type: scripted, base_url: "http://x/v1"}
    web: {type: openai, scripts: "scripts/*.yaml"}
    two: {type: openai, base_url: "ftp://x", api_key_env: A, api_key_file: /none}
    none: {type: scripted, scripts: "nowhere/*.yaml"}
    what: {type: claude}
    key: {type: openai, base_url: "http://x/v1", api_key_env: "sk-123"}
)"),
        ElementsAre(
            HasSubstr("4: models.providers.Bad: a provider's name"),
            HasSubstr("9: models.providers.what.type: must be one of openai and scripted, found "
                      "\"claude\""),
            HasSubstr(
                "10: models.providers.key.api_key_env: must be the name of an environment variable"
            ),
            HasSubstr("2: models.default: the provider \"main\" is not declared; add it"),
            HasSubstr(
                "5: models.providers.demo.base_url: means nothing to a provider of type scripted"
            ),
            HasSubstr("5: models.providers.demo.scripts: is missing"),
            HasSubstr("7: models.providers.two.api_key_file: contradicts api_key_env"),
            HasSubstr("7: models.providers.two.base_url: \"ftp://x\" is not a usable base URL"),
            HasSubstr("6: models.providers.web.scripts: means nothing to a provider of type openai"
            ),
            HasSubstr("6: models.providers.web.base_url: is missing"),
            HasSubstr("7: models.providers.two.api_key_file: "),
            HasSubstr("8: models.providers.none.scripts: matches no file")
        )
    );
    EXPECT_THAT(
        faults("models: {default: gpt, providers: {demo: {type: scripted, scripts: \"scripts/*\"}}}"
        ),
        ElementsAre(HasSubstr(
            "models.default: \"gpt\" is not a model spec; write <provider>:<model>; providers: demo"
        ))
    );
}

TEST_F(ConfigTest, ContradictionsOfUsersAndKeysAreFaults) {
    set("ARS_TEST_SHORT", "short");
    const std::string digest = base::sha256_hex("some other key, long enough");
    EXPECT_THAT(
        faults(
            std::string(kModels) + R"(users: [{uid: a}, {uid: a}, {uid: b, role: king}]
api_keys:
  - {name: k1, uid: ghost, sha256: )" +
            digest + R"(}
  - {name: k1, uid: a, sha256: ""}
  - {name: k3, uid: a}
  - {name: k4, uid: a, key_env: ARS_TEST_UNSET, sha256: )" +
            digest + R"(}
  - {name: k5, uid: b, key_env: ARS_TEST_UNSET, expires: tomorrow}
  - {name: k6, uid: b, key_env: ARS_TEST_SHORT}
  - {name: k7, uid: b, key_file: missing.key}
)"
        ),
        ElementsAre(
            HasSubstr("5: users[2].role: must be one of user, admin and superadmin"),
            HasSubstr(
                "8: api_keys[1].sha256: is empty, so it would match no key; make it with: printf"
            ),
            HasSubstr("5: users[1].uid: the uid \"a\" stands twice"),
            HasSubstr(
                "7: api_keys[0].uid: there is no user \"ghost\"; add it to users; known: a, a and b"
            ),
            HasSubstr("8: api_keys[1].name: the name \"k1\" stands twice"),
            HasSubstr("9: api_keys[2]: says nowhere what the key is; give exactly one of"),
            HasSubstr("10: api_keys[3]: has more than one source of the key"),
            HasSubstr("11: api_keys[4].expires: \"tomorrow\" is not a date"),
            HasSubstr("10: api_keys[3]: is the same key as \"k1\""),
            HasSubstr("11: api_keys[4].key_env: the environment variable ARS_TEST_UNSET is not set"
            ),
            HasSubstr("12: api_keys[5].key_env: the key has 5 characters; it needs 16 to 1024"),
            HasSubstr("13: api_keys[6].key_file: ")
        )
    );
}

TEST_F(ConfigTest, KeysComeFromFilesToo) {
    write("the.key", std::string(kKey) + "\n");
    const LoadedConfig loaded = good(
        std::string(kModels) +
        "users: [{uid: a}]\napi_keys: [{name: k, uid: a, key_file: the.key}]\n"
    );
    ASSERT_EQ(loaded.keys.size(), 1U);
    EXPECT_EQ(loaded.keys[0].sha256, base::sha256_hex(kKey));
    EXPECT_THAT(loaded.secret_files, ElementsAre(path(), dir_ + "/the.key"));
}

TEST_F(ConfigTest, AnExpiredKeyIsNoted) {
    const LoadedConfig loaded = good(
        std::string(kModels) +
        "users: [{uid: a}]\napi_keys: [{name: old, uid: a, expires: \"2020-01-01\", sha256: " +
        base::sha256_hex(kKey) + "}]\n"
    );
    EXPECT_THAT(loaded.notes, ElementsAre(HasSubstr("\"old\" has expired")));
    EXPECT_EQ(loaded.keys.at(0).expires_ms, 1577836800000);
}

TEST_F(ConfigTest, AnUnsetProviderKeyIsNotedOnlyWhereTheProviderIsUsed) {
    const std::string yaml =
        R"(    web: {type: openai, base_url: "http://x/v1", api_key_env: ARS_TEST_UNSET}
)";
    EXPECT_THAT(good(kModels + yaml).notes, IsEmpty());
    write("agents/a.yaml", "slug: a\nconfig_json: {context: {model: \"web:gpt\"}}\n");
    const LoadedConfig loaded = good(kModels + yaml);
    EXPECT_THAT(loaded.notes, ElementsAre(HasSubstr("ARS_TEST_UNSET is not set")));
    EXPECT_EQ(loaded.config.models.providers.at("web").api_key, "");
}

TEST_F(ConfigTest, TwoFilesMayNotHaveTheSameSlug) {
    write("agents/a.yaml", "slug: same\n");
    write("agents/b.yaml", "name: B\nslug: same\n");
    EXPECT_THAT(
        faults(kModels),
        ElementsAre(HasSubstr(
            "agents/b.yaml:2: slug: the slug \"same\" is already used by " + dir_ + "/agents/a.yaml"
        ))
    );
}

TEST_F(ConfigTest, SubagentsMustExistAndBeSubAgents) {
    write(
        "agents/main.yaml",
        "slug: main\nconfig_json:\n  context:\n    subagents: [main, ghost, broken, "
        "general-purpose]\n"
    );
    write("agents/sub.yaml", "slug: broken\nbackend_id: SubAgentBackend\nbad: 1\n");
    EXPECT_THAT(
        faults(kModels),
        ElementsAre(
            HasSubstr("agents/sub.yaml:3: bad: unknown key"),
            HasSubstr("agents/main.yaml:4: config_json.context.subagents[0]: \"main\" is a main "
                      "agent; sub-agents: general-purpose"),
            HasSubstr("agents/main.yaml:4: config_json.context.subagents[1]: \"ghost\" is no agent")
        )
    );
}

TEST_F(ConfigTest, AgentPatternsThatMatchNothingAreFaultsAndAnEmptyListIsNone) {
    EXPECT_THAT(
        faults(std::string(kModels) + "agents: [\"agents/*.yaml\", other.yaml]\n"),
        ElementsAre(
            HasSubstr("agents[0]: \"agents/*.yaml\" matches no file"), HasSubstr("agents[1]: ")
        )
    );
    write("agents/a.yaml", "slug: a\n");
    write("agents/.hidden.yaml", "nonsense");
    write("agents/notes.txt", "nonsense");
    write("agents/deep/b.yaml", "nonsense");
    EXPECT_EQ(
        good(std::string(kModels) + "agents: [\"agents/*.yaml\", agents/a.yaml]\n").agents.size(),
        1U
    );
    EXPECT_EQ(good(std::string(kModels) + "agents: []\n").agents.size(), 0U);
    EXPECT_EQ(good(kModels).agents.size(), 1U) << "agents/*.yaml is the default";
}

TEST_F(ConfigTest, TheDatabaseMustNotLieAmongUsersFiles) {
    EXPECT_THAT(
        faults(std::string(kModels) + "data_dir: /srv/ars/db\nmounts: {users: /srv/ars}\n"),
        ElementsAre(HasSubstr("mounts.users: holds data_dir (/srv/ars/db)"))
    );
    EXPECT_THAT(
        faults(std::string(kModels) + "data_dir: /srv/ars-db\nmounts: {users: /srv/ars}\n"),
        IsEmpty()
    );
}

TEST_F(ConfigTest, AMissingFileIsOneFault) {
    const auto loaded = load_config(dir_ + "/nowhere.yaml");
    ASSERT_FALSE(loaded.has_value());
    EXPECT_THAT(loaded.error(), ElementsAre(HasSubstr("nowhere.yaml")));
}

TEST(ConfigDate, IsADayOrAMomentInUtc) {
    EXPECT_EQ(parse_date("1970-01-02"), 86'400'000);
    EXPECT_EQ(parse_date("2024-02-29T12:30:15Z"), 1709209815000);
    for (const char* text :
         {"",
          "2023-02-29",
          "2024-13-01",
          "2024-1-01",
          "2024-01-01T25:00:00Z",
          "2024-01-01 00:00:00Z",
          "2024-01-01T00:00:00",
          "2024-01-0x",
          "20240101",
          "-024-01-01"}) {
        EXPECT_FALSE(parse_date(text).has_value()) << text;
    }
}

}  // namespace
}  // namespace ars::server
