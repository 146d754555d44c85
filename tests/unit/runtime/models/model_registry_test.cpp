#include "runtime/models/model_registry.hpp"

#include "tests/unit/runtime/models/client_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ars::models {
namespace {

struct RegistryTest : testing::Test {
    RegistryTest() {
        registry.add(
            "main", std::make_unique<OpenAiClient>(io.get_executor(), OpenAiClient::Settings{}, log)
        );
        registry.add(
            "local",
            std::make_unique<OpenAiClient>(io.get_executor(), OpenAiClient::Settings{}, log)
        );
    }
    boost::asio::io_context io;
    base::Log log{-1, base::LogLevel::off};
    ModelRegistry registry;
};

TEST_F(RegistryTest, FindsTheProviderOfASpec) {
    const auto main = registry.resolve("main:gpt-x");
    const auto local = registry.resolve("local:llama3:8b");
    ASSERT_TRUE(main && local);
    EXPECT_EQ(main->model, "gpt-x");
    EXPECT_EQ(local->model, "llama3:8b");
    EXPECT_NE(main->client, local->client);
}

TEST_F(RegistryTest, NamesTheDeclaredProvidersWhenThereIsNoSuchOne) {
    for (const char* spec : {"other:gpt-x", "main", "main:", "", ":x"}) {
        const auto model = registry.resolve(spec);
        ASSERT_FALSE(model) << spec;
        EXPECT_EQ(model.error().code, "unknown_model");
        EXPECT_THAT(model.error().message, testing::HasSubstr("local, main"));
    }
}

}  // namespace
}  // namespace ars::models
