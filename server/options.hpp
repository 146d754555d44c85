// The command line as values. options.cpp is the only file that includes CLI11.
#pragma once

#include "base/deadline.hpp"
#include "sandbox/policy.hpp"
#include "sandbox/scope.hpp"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace ars::server {

// --io; absent = as configured, or the best that works.
using IoOption = std::optional<sandbox::IoBackend>;
// --tier; absent = auto, the best that works.
using TierOption = std::optional<sandbox::Tier>;

struct ServeOptions {
    std::string config;
    std::string listen;  // empty = from the config
    std::string data;    // empty = from the config
    IoOption io;
};
struct RunOptions {
    std::string agent;
    std::string prompt;
    std::string config;   // empty = ./configs/appliance.yaml or /etc/ars/appliance.yaml
    std::string workdir;  // empty = a project directory in the state
    IoOption io;
    TierOption tier;
    bool json = false;
    bool allow_root_owner = false;
};
struct ExecOptions {
    std::vector<std::string> command;
    std::string workspace;  // empty = a temporary one
    base::milliseconds timeout{30'000};
    std::string policy = "default";
    std::string config;  // empty = the built-in policies and defaults
    IoOption io;
    TierOption tier;
    bool json = false;
    bool batch = false;
    bool allow_root_owner = false;
};
struct ToolOptions {
    std::string name;
    std::string arguments;  // JSON object
    std::string workspace;
    std::string policy = "default";
    std::string config;  // empty = the built-in policies and defaults
    IoOption io;
    TierOption tier;
    bool allow_root_owner = false;
};
struct DoctorOptions {
    IoOption io;
    TierOption tier;
    bool json = false;
};
struct CheckOptions {
    std::string config;
    bool agent_schema = false;  // print the JSON Schema of agent files instead
};
// `ars backup DIR` and `ars restore DIR`.
struct BackupOptions {
    std::string directory;
    std::string config;  // empty when `data` says where the store is
    std::string data;
    bool restore = false;
};
struct VersionOptions {};

using Options = std::variant<
    ServeOptions,
    RunOptions,
    ExecOptions,
    ToolOptions,
    DoctorOptions,
    CheckOptions,
    BackupOptions,
    VersionOptions>;

struct ParsedOptions {
    std::optional<Options> options;  // absent: exit at once with `exit_code` after printing `text`
    int exit_code = 0;               // 0 for --help, 2 for bad usage
    std::string text;                // to stdout when exit_code is 0, else to stderr
};
[[nodiscard]] ParsedOptions parse_options(int argc, const char* const* argv);

// One function per command, each in its command_<name>.cpp. They return the process's exit code.
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInterrupted = 3;  // of `run`: it waits for a person
int command_serve(const ServeOptions& options);
int command_run(const RunOptions& options);
int command_exec(const ExecOptions& options);
int command_tool(const ToolOptions& options);
int command_doctor(const DoctorOptions& options);
int command_check(const CheckOptions& options);
int command_backup(const BackupOptions& options);
int command_version();

}  // namespace ars::server
