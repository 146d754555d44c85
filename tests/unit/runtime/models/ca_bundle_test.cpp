#include "runtime/models/ca_bundle.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdlib.h>

namespace ars::models {
namespace {

class EnvironmentValue {
  public:
    EnvironmentValue(const char* name, const char* value) : name_(name) {
        const char* old = ::getenv(name);
        had_ = old != nullptr;
        old_ = had_ ? old : "";
        ::setenv(name, value, 1);
    }
    ~EnvironmentValue() { had_ ? ::setenv(name_, old_.c_str(), 1) : ::unsetenv(name_); }
    EnvironmentValue(const EnvironmentValue&) = delete;
    EnvironmentValue& operator=(const EnvironmentValue&) = delete;

  private:
    const char* name_;
    bool had_ = false;
    std::string old_;
};

TEST(CaBundle, PrefersTheConfiguredFileToTheEnvironment) {
    const EnvironmentValue set("SSL_CERT_FILE", "/dev/null");
    EXPECT_EQ(find_ca_bundle("/proc/self/status").value(), "/proc/self/status");
    EXPECT_EQ(find_ca_bundle("").value(), "/dev/null");
}

TEST(CaBundle, NeverPassesOverAFileThatWasNamed) {
    const auto configured = find_ca_bundle("/nonexistent/ca.pem");
    ASSERT_FALSE(configured);
    EXPECT_EQ(configured.error().code, "no_ca_bundle");
    EXPECT_THAT(configured.error().message, testing::HasSubstr("/nonexistent/ca.pem"));
    const EnvironmentValue set("SSL_CERT_FILE", "/nonexistent/env.pem");
    EXPECT_FALSE(find_ca_bundle(""));
}

}  // namespace
}  // namespace ars::models
