// The `sandbox:` part of appliance.yaml, through the whole loader: policies, environment, and what
// contradicts the rest of the configuration.
#include "server/sandbox_config.hpp"

#include "server/config.hpp"
#include "tests/unit/server/config_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ars::server {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SandboxConfigTest : public ConfigFixture {
  protected:
    static std::string with(std::string_view sandbox) {
        return std::string(kModels) + std::string(sandbox);
    }
    static std::string with_key(std::string_view sandbox) {
        return with(sandbox) +
               "users: [{uid: alice}]\napi_keys: [{name: k, uid: alice, key_env: ARS_TEST_KEY}]\n";
    }
};

TEST_F(SandboxConfigTest, APolicyIsReadWithAllItsLimits) {
    const LoadedConfig loaded = good(with(R"(sandbox:
  io: epoll
  policies:
    careful:
      network: allowlist
      allowed_hosts: ["example.com", "*.example.org"]
      ptrace: true
      processes: 64
      memory: 512MiB
      file_size: 1GiB
      open_files: 256
      cpu: 60s
      tmp_size: 64MiB
)"));
    EXPECT_EQ(loaded.config.sandbox.io, sandbox::IoBackend::epoll);
    const auto policy = loaded.policies.find("careful");
    ASSERT_TRUE(policy);
    EXPECT_EQ(policy->network, sandbox::Network::allowlist);
    EXPECT_THAT(policy->allowed_hosts, ElementsAre("example.com", "*.example.org"));
    EXPECT_TRUE(policy->debug);
    EXPECT_EQ(policy->processes, 64U);
    EXPECT_EQ(policy->memory, 512 * base::limits::kMiB);
    EXPECT_EQ(policy->file_size, base::limits::kGiB);
    EXPECT_EQ(policy->open_files, 256U);
    EXPECT_EQ(policy->cpu_seconds, 60U);
    EXPECT_EQ(policy->tmp_size, 64 * base::limits::kMiB);
}

TEST_F(SandboxConfigTest, EveryFaultOfEveryPolicyIsReportedAtOnce) {
    EXPECT_THAT(
        faults(with(R"(sandbox:
  policies:
    a: {netwrok: none, processes: 1, memory: 1KiB, cpu: 10ms}
    B: {network: some}
    c: {network: allowlist}
    d: {allowed_hosts: []}
)")),
        ElementsAre(
            HasSubstr("appliance.yaml:7: sandbox.policies.a.processes: must be between 8 and"),
            HasSubstr("appliance.yaml:7: sandbox.policies.a.memory: must be at least 16777216"),
            HasSubstr("appliance.yaml:7: sandbox.policies.a.cpu: must be at least 1s"),
            "appliance.yaml:7: sandbox.policies.a.netwrok: unknown key; did you mean \"network\"?",
            HasSubstr("appliance.yaml:8: sandbox.policies.B: a policy's name is made of"),
            HasSubstr("appliance.yaml:8: sandbox.policies.B.network: must be one of none, "
                      "allowlist and host"),
            HasSubstr("sandbox.policies.c.allowed_hosts: is missing; name the hosts, or write "
                      "allowed_hosts: [] to allow none"),
            HasSubstr("sandbox.policies.d.allowed_hosts: means nothing without an allow-list")
        )
    );
}

TEST_F(SandboxConfigTest, C86_AHostThatHasTwoSpellingsIsRefusedWhereItStands) {
    EXPECT_THAT(
        faults(with(R"(sandbox:
  policies:
    web: {network: allowlist, allowed_hosts: [good.example, "169.254.169.254", "good.example."]}
)")),
        ElementsAre(
            HasSubstr("appliance.yaml:7: sandbox.policies.web.allowed_hosts[1]: "),
            HasSubstr("appliance.yaml:7: sandbox.policies.web.allowed_hosts[2]: ")
        )
    );
}

TEST_F(SandboxConfigTest, AnAgentChoosesAmongTheDeclaredPolicies) {
    write("agents/a.yaml", "slug: a\nconfig_json:\n  context: {policy: careful}\n");
    write("agents/b.yaml", "slug: b\nconfig_json:\n  context: {policy: carefull}\n");
    EXPECT_THAT(
        faults(with("sandbox: {policies: {careful: {}}}\n")),
        ElementsAre("agents/b.yaml:3: config_json.context.policy: unknown policy \"carefull\"; did "
                    "you mean \"careful\"? known: build, careful, debug, default and host")
    );
}

TEST_F(SandboxConfigTest, TheHostsNetworkDemandsAKeyWhereverItIsNamed) {
    EXPECT_THAT(
        faults(with("sandbox: {policies: {open: {network: host}}}\n")),
        ElementsAre(HasSubstr("appliance.yaml:5: sandbox.policies.open.network: tools with the "
                              "server's network could call this API, which demands no key"))
    );
    write("agents/builder.yaml", "slug: builder\nconfig_json:\n  context: {policy: build}\n");
    EXPECT_THAT(
        faults(with("")),
        ElementsAre(HasSubstr("agents/builder.yaml:3: config_json.context.policy: tools with the "
                              "server's network"))
    );
    set("ARS_TEST_KEY", kKey);
    EXPECT_THAT(faults(with_key("sandbox: {policies: {open: {network: host}}}\n")), IsEmpty());
    // Redefined, the same name shares nothing.
    EXPECT_THAT(faults(with("sandbox: {policies: {build: {memory: 1GiB}}}\n")), IsEmpty());
}

TEST_F(SandboxConfigTest, TheLandlockTierHasNoAllowList) {
    EXPECT_THAT(
        faults(with("sandbox: {require: landlock, policies: {web: {network: allowlist, "
                    "allowed_hosts: []}}}\n")),
        ElementsAre(HasSubstr("sandbox.policies.web.network: the landlock tier has no allow-list"))
    );
}

TEST_F(SandboxConfigTest, C88_ToolsSeeTheVariablesThatAreNamedAndNoOthers) {
    set("ARS_TEST_PROXY", "http://127.0.0.1:1");
    set("ARS_TEST_OTHER", "hidden");
    const LoadedConfig loaded = good(with(R"(sandbox:
  environment:
    pass: [ARS_TEST_PROXY, ARS_TEST_UNSET]
    set: {LANG: de_DE.UTF-8, NEW: "1"}
)"));
    EXPECT_EQ(loaded.environment.at("ARS_TEST_PROXY"), "http://127.0.0.1:1");
    EXPECT_EQ(loaded.environment.at("LANG"), "de_DE.UTF-8");
    EXPECT_EQ(loaded.environment.at("NEW"), "1");
    EXPECT_TRUE(loaded.environment.contains("PATH")) << "the defaults stay";
    EXPECT_FALSE(loaded.environment.contains("ARS_TEST_UNSET"));
    EXPECT_FALSE(loaded.environment.contains("ARS_TEST_OTHER"));
}

TEST_F(SandboxConfigTest, C88_NoKeyOfOursIsHandedToTools) {
    set("ARS_TEST_KEY", kKey);
    const auto found = faults(R"(models:
  default: "main:x"
  providers:
    main: {type: openai, base_url: "http://127.0.0.1:9/v1", api_key_env: ARS_MODEL_KEY}
users: [{uid: alice}]
api_keys: [{name: front, uid: alice, key_env: ARS_TEST_KEY}]
sandbox:
  environment:
    pass: [HOME, OPENAI_API_KEY, ARS_MODEL_KEY, ARS_TEST_KEY, "1X"]
    set: {"A B": c}
)");
    EXPECT_THAT(
        found,
        ElementsAre(
            HasSubstr("sandbox.environment.pass[4]: must be the name of an environment variable"),
            HasSubstr("sandbox.environment.set.A B: must be the name of an environment variable"),
            HasSubstr("appliance.yaml:9: sandbox.environment.pass[1]: OPENAI_API_KEY holds the "
                      "key of a model provider; no tool may see it: remove the name"),
            HasSubstr("pass[2]: ARS_MODEL_KEY holds the key of models.providers.main"),
            HasSubstr("pass[3]: ARS_TEST_KEY holds the key of the API key \"front\"")
        )
    );
}

TEST_F(SandboxConfigTest, C88_AKeyIsNotExpandedIntoAVariableEither) {
    set("ARS_MODEL_KEY", "a secret");
    EXPECT_THAT(
        faults(with("sandbox: {environment: {set: {TOKEN: \"${ARS_MODEL_KEY}\"}}}\n")),
        ElementsAre(HasSubstr("sandbox.environment.set.TOKEN: environment variables are not "
                              "expanded here"))
    );
}

TEST_F(SandboxConfigTest, AnAgentsVariablesAreNamesAndTexts) {
    write("agents/a.yaml", "slug: a\nconfig_json:\n  context:\n    env: {GOOD: x, 2B: y, N: 3}\n");
    EXPECT_THAT(
        faults(with("")),
        ElementsAre(
            HasSubstr("agents/a.yaml:4: config_json.context.env.2B: must be the name of an"),
            HasSubstr("agents/a.yaml:4: config_json.context.env.N: must be a text, found the "
                      "number 3")
        )
    );
}

}  // namespace
}  // namespace ars::server
