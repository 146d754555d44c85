// A configuration directory of its own for each test, and the two ways to load it.
#pragma once

#include "base/digest.hpp"
#include "server/config.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace ars::server {

inline constexpr const char* kModels = R"(models:
  default: "demo:scripted"
  providers:
    demo: {type: scripted, scripts: "scripts/*.yaml"}
)";
inline constexpr const char* kKey = "a key of at least sixteen characters";

// A configuration directory of its own, gone at the end; variables set are unset again.
class ConfigFixture : public ::testing::Test {
  protected:
    ConfigFixture() : dir_(::testing::TempDir() + "config_" + base::random_uuid()) {
        write("scripts/any.yaml", "agent: \"*\"\nturns: [{text: hello}]\n");
    }
    ~ConfigFixture() override {
        for (const std::string& name : variables_) {
            ::unsetenv(name.c_str());
        }
        std::error_code ignored;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(dir_, ignored)) {
            if (!entry.is_directory()) {
                files_.push_back(entry.path());
            }
        }
        for (const auto& file : files_) {
            std::filesystem::remove(file, ignored);
        }
        for (const char* folder : {"/scripts", "/agents", "/agents/deep", ""}) {
            std::filesystem::remove(dir_ + folder, ignored);
        }
    }

    void write(const std::string& name, std::string_view text) const {
        const std::filesystem::path path = dir_ + "/" + name;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text;
    }
    void set(const std::string& name, const std::string& value) {
        ::setenv(name.c_str(), value.c_str(), 1);
        variables_.push_back(name);
    }
    [[nodiscard]] std::string path() const { return dir_ + "/appliance.yaml"; }

    [[nodiscard]] std::expected<LoadedConfig, ConfigFaults> load(std::string_view yaml) const {
        write("appliance.yaml", yaml);
        return load_config(path());
    }
    // Faults without the directory in front; empty when the configuration is fine.
    [[nodiscard]] std::vector<std::string> faults(std::string_view yaml) const {
        std::vector<std::string> out;
        if (const auto loaded = load(yaml); !loaded) {
            for (const std::string& line : loaded.error()) {
                out.push_back(line.starts_with(dir_) ? line.substr(dir_.size() + 1) : line);
            }
        }
        return out;
    }
    [[nodiscard]] LoadedConfig good(std::string_view yaml) const {
        auto loaded = load(yaml);
        EXPECT_TRUE(loaded.has_value()) << (loaded ? "" : loaded.error().front());
        return loaded ? std::move(*loaded) : LoadedConfig{};
    }

    std::string dir_;

  private:
    std::vector<std::string> variables_;
    std::vector<std::filesystem::path> files_;
};

}  // namespace ars::server
