// The only file that includes CLI11.
#include "server/options.hpp"

#include "base/units.hpp"

#include <CLI/CLI.hpp>

#include <sstream>

namespace ars::server {

namespace {

// CLI11 reports a validator's text as a usage error.
CLI::Validator duration_validator() {
    return CLI::Validator(
        [](std::string& text) {
            const auto parsed = base::parse_duration(text);
            return parsed ? std::string() : parsed.error().message;
        },
        "DURATION"
    );
}

void add_workspace(CLI::App& command, std::string& directory, bool& allow_root, const char* name) {
    command
        .add_option(name, directory, "mounted at /home/gem/user-data, and the current directory")
        ->type_name("DIR");
    command.add_flag(
        "--allow-root-owner", allow_root, "accept a directory that belongs to root on disk"
    );
}

void add_io(CLI::App& command, IoOption& io) {
    const auto read = [&io](const std::string& name) {
        io = name == "io_uring" ? sandbox::IoBackend::io_uring
             : name == "epoll"  ? sandbox::IoBackend::epoll
                                : sandbox::IoBackend::automatic;
    };
    command
        .add_option_function<std::string>(
            "--io", read, "how output of tools is read: auto, io_uring or epoll"
        )
        ->check(CLI::IsMember({"auto", "io_uring", "epoll"}))
        ->type_name("BACKEND");
}

void add_policy(CLI::App& command, std::string& policy, std::string& config) {
    command.add_option(
        "--policy",
        policy,
        "default, debug (ptrace), build (this machine's network), or one of "
        "--config"
    );
    command.add_option("--config", config, "appliance.yaml, for its policies and environment");
}

void add_tier(CLI::App& command, TierOption& tier) {
    const auto read = [&tier](const std::string& name) {
        tier = name == "namespaces" ? TierOption(sandbox::Tier::namespaces)
               : name == "landlock" ? TierOption(sandbox::Tier::landlock)
                                    : std::nullopt;
    };
    command
        .add_option_function<std::string>(
            "--tier", read, "auto (the best that works), namespaces or landlock"
        )
        ->check(CLI::IsMember({"auto", "namespaces", "landlock"}))
        ->type_name("TIER");
}

// All commands with the values they parse into. A command's options are made when it is named: a
// start pays for one command.
struct CommandLine {
    CLI::App app{"ARS: agents and their sandboxed tools, in one binary", "ars"};
    ServeOptions serve;
    RunOptions run;
    ExecOptions exec;
    std::string exec_timeout = "30s";
    ToolOptions tool;
    DoctorOptions doctor;
    CheckOptions check;
    BackupOptions backup;
    BackupOptions restore;

    CommandLine() {
        app.require_subcommand(1);
        add("serve", "serve agents and runs over HTTP", &CommandLine::add_serve);
        add("run", "one run in this process, shown as it happens", &CommandLine::add_run);
        add("exec", "one command in a fresh sandbox", &CommandLine::add_exec);
        add("tool", "one built-in tool, as an agent would call it", &CommandLine::add_tool);
        add("doctor",
            "what this host lets the sandbox do, and how to get more",
            &CommandLine::add_doctor);
        add("check", "read a configuration and report every fault in it", &CommandLine::add_check);
        add("backup",
            "copy the store of runs, while a server uses it or not",
            &CommandLine::add_backup);
        add("restore", "make the store of runs from such a copy", &CommandLine::add_restore);
        app.add_subcommand("version", "version, compiler and libraries");
    }

    void add(const char* name, const char* what, void (CommandLine::*options)(CLI::App*)) {
        CLI::App* const command = app.add_subcommand(name, what);
        command->preparse_callback([this, command, options](std::size_t) {
            (this->*options)(command);
        });
    }

    void add_doctor(CLI::App* command) {
        command->add_flag("--json", doctor.json, "machine-readable");
        add_io(*command, doctor.io);
        add_tier(*command, doctor.tier);
    }

    void add_check(CLI::App* command) {
        auto* config = command->add_option("--config", check.config, "appliance.yaml");
        auto* schema = command->add_flag(
            "--agent-schema",
            check.agent_schema,
            "print the JSON Schema of agent files, for editors"
        );
        config->excludes(schema);
        command->require_option(1);
    }

    void add_serve(CLI::App* command) {
        command->add_option("--config", serve.config, "appliance.yaml")->required();
        command->add_option("--listen", serve.listen, "ADDR:PORT instead of server.listen");
        command->add_option("--data", serve.data, "directory instead of data_dir");
        add_io(*command, serve.io);
    }

    void add_run(CLI::App* command) {
        command->add_option("agent", run.agent, "slug of the agent")->required();
        command->add_option("prompt", run.prompt, "what to ask it")->required();
        command->add_option(
            "--config",
            run.config,
            "default: ./configs/appliance.yaml, else /etc/ars/appliance.yaml"
        );
        add_workspace(*command, run.workdir, run.allow_root_owner, "--workdir,--workspace");
        add_io(*command, run.io);
        add_tier(*command, run.tier);
        command->add_flag("--json", run.json, "print the run's events as JSON lines instead");
    }

    void add_exec(CLI::App* command) {
        command->add_option("command", exec.command, "after --");
        command->add_option("--timeout", exec_timeout, "time limit, default 30s")
            ->check(duration_validator());
        add_policy(*command, exec.policy, exec.config);
        add_io(*command, exec.io);
        command->add_flag("--json", exec.json, "print the outcome instead of the output");
        command->add_flag(
            "--batch", exec.batch, "read commands as JSON lines, print an outcome line for each"
        );
        add_tier(*command, exec.tier);
        add_workspace(*command, exec.workspace, exec.allow_root_owner, "--workspace");
    }

    void add_tool(CLI::App* command) {
        command->add_option("name", tool.name, "for example read_file")->required();
        command->add_option("arguments", tool.arguments, "JSON object, or - for standard input")
            ->required();
        add_policy(*command, tool.policy, tool.config);
        add_io(*command, tool.io);
        add_tier(*command, tool.tier);
        add_workspace(*command, tool.workspace, tool.allow_root_owner, "--workspace");
    }

    void add_backup(CLI::App* command) { add_copy(command, backup); }
    void add_restore(CLI::App* command) { add_copy(command, restore); }

    static void add_copy(CLI::App* command, BackupOptions& into) {
        command->add_option("directory", into.directory, "of the copy")->required();
        command->add_option("--config", into.config, "appliance.yaml, for its data_dir");
        command->add_option("--data", into.data, "the data_dir itself, instead of --config");
    }

    [[nodiscard]] std::optional<Options> chosen() {
        const std::string name = app.get_subcommands().front()->get_name();
        if (name == "serve") {
            return serve;
        }
        if (name == "run") {
            return run;
        }
        if (name == "exec") {
            exec.timeout = *base::parse_duration(exec_timeout);
            return exec;
        }
        if (name == "tool") {
            return tool;
        }
        if (name == "doctor") {
            return doctor;
        }
        if (name == "check") {
            return check;
        }
        if (name == "backup") {
            return backup;
        }
        if (name == "restore") {
            restore.restore = true;
            return restore;
        }
        return VersionOptions{};
    }
};

ParsedOptions usage_error(const std::string& text) {
    return ParsedOptions{std::nullopt, kExitUsage, text};
}

}  // namespace

ParsedOptions parse_options(int argc, const char* const* argv) {
    CommandLine line;
    try {
        line.app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        std::ostringstream out;
        std::ostringstream err;
        const int code = line.app.exit(error, out, err);
        if (code == 0) {
            return ParsedOptions{std::nullopt, 0, out.str()};
        }
        return usage_error("ars: " + err.str());
    }
    if (line.app.got_subcommand("exec")) {
        if (line.exec.batch == !line.exec.command.empty()) {
            return usage_error(
                line.exec.batch
                    ? "ars exec: --batch reads its commands from standard input; drop the command\n"
                    : "ars exec: no command; write it after --, as in: ars exec -- ls -l\n"
            );
        }
    }
    for (const auto& [name, values] :
         {std::pair("backup", &line.backup), std::pair("restore", &line.restore)}) {
        if (line.app.got_subcommand(name) && values->config.empty() == values->data.empty()) {
            return usage_error(
                std::string("ars ") + name + ": say where the store is, with --config or --data\n"
            );
        }
    }
    return ParsedOptions{line.chosen(), 0, {}};
}

}  // namespace ars::server
