// scope_soak TIER [COMMANDS [SCOPES]]: that many commands through one scope of that tier, then that
// many scopes made and released, in one process as the server is one. Prints what the process held
// before and after, and fails when anything grew.
#include "base/log.hpp"
#include "fsmount/access_plan.hpp"
#include "fsmount/layout.hpp"
#include "fsmount/mount_plan.hpp"
#include "fsmount/workspace.hpp"
#include "sandbox/privileges.hpp"
#include "sandbox/scope.hpp"
#include "tests/soak/figures.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

namespace ars::soak {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr int kSkipped = 77;
constexpr int kWarmCommands = 100;  // after these, pools and heap have their size
constexpr int kWarmScopes = 20;

struct Soak {
    sandbox::Tier tier;
    std::string scope_directories;  // where the landlock tier's scopes have theirs
    std::shared_ptr<fsmount::Workspace> workspace;
    std::unique_ptr<sandbox::Sandbox> sandbox;
};

base::Result<sandbox::ScopeSpec> scope_spec(const Soak& soak, const std::string& id) {
    auto mounts = fsmount::make_mount_plan(*soak.workspace, {});
    if (!mounts) {
        return std::unexpected(mounts.error());
    }
    sandbox::ScopeSpec spec;
    spec.tier = soak.tier;
    if (soak.tier == sandbox::Tier::namespaces) {
        spec.mounts = std::move(*mounts);
        return spec;
    }
    auto access = fsmount::make_access_plan(*mounts, soak.scope_directories + "/" + id);
    if (!access) {
        return std::unexpected(access.error());
    }
    spec.access = std::move(*access);
    return spec;
}

base::Task<std::shared_ptr<sandbox::Scope>> scope(Soak& soak, std::string id) {
    auto spec = [&soak, &id] { return scope_spec(soak, id); };
    auto acquired = co_await soak.sandbox->acquire({"soak", id, "default"}, spec);
    if (!acquired) {
        throw std::runtime_error(acquired.error().message);
    }
    co_return *acquired;
}

// Most are the shortest command there is; some leave a process behind, crash, are refused a call,
// or run out of time.
sandbox::Command command(int number) {
    sandbox::Command one;
    one.environment = sandbox::default_environment();
    one.cwd = std::string(fsmount::kUserData);
    one.timeout = 20s;
    if (number % 500 == 499) {
        one.argv = {"sleep", "5"};
        one.timeout = 20ms;
    } else if (number % 50 == 49) {
        one.argv = {"sh", "-c", "sleep 0.01 & echo out; echo err >&2"};
    } else if (number % 50 == 24) {
        one.argv = {"sh", "-c", "kill -SEGV $$"};
    } else if (number % 50 == 12) {
        one.argv = {"unshare", "-U", "true"};
    } else {
        one.argv = {"true"};
    }
    return one;
}

base::Task<void> run_commands(Soak& soak, int count) {
    const auto one = co_await scope(soak, "commands");
    for (int i = 0; i < count; ++i) {
        const sandbox::Outcome outcome = co_await one->run(command(i));
        if (outcome.status == sandbox::OutcomeStatus::setup_failed) {
            throw std::runtime_error("command " + std::to_string(i) + ": " + outcome.detail);
        }
    }
}

base::Task<void> run_scopes(Soak& soak, int count) {
    for (int i = 0; i < count; ++i) {
        const std::string id = "scope-" + std::to_string(i);
        {
            const auto one = co_await scope(soak, id);
            const sandbox::Outcome outcome = co_await one->run(command(0));
            if (outcome.shell_code() != 0) {
                throw std::runtime_error(id + ": " + outcome.detail);
            }
        }
        co_await soak.sandbox->release({"soak", id, "default"});
    }
}

void drive(asio::io_context& io, base::Task<void> task) {
    std::exception_ptr failure;
    bool done = false;
    io.restart();
    asio::co_spawn(io, std::move(task), [&](std::exception_ptr error) {
        failure = error;
        done = true;
    });
    while (!done && io.run_one() > 0) {
    }
    if (failure) {
        std::rethrow_exception(failure);
    }
}

// One kind of work, after as much of it as fills pools and heap. What a command left behind has
// half a second to end.
bool measure(
    asio::io_context& io,
    Soak& soak,
    base::Task<void> (*work)(Soak&, int),
    int warm_up,
    int count,
    const char* what
) {
    drive(io, work(soak, warm_up));
    ::usleep(500'000);
    const Figures before = take_figures(soak.scope_directories);
    const auto begun = std::chrono::steady_clock::now();
    drive(io, work(soak, count));
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begun;
    ::usleep(500'000);
    const Figures after = take_figures(soak.scope_directories);
    char title[128];
    std::snprintf(
        title,
        sizeof title,
        "%d %s: %.1f s, %.2f ms each",
        count,
        what,
        seconds.count(),
        seconds.count() * 1000 / count
    );
    return report(title, before, after);
}

int soak(sandbox::Tier tier, const std::string& directory, int commands, int scopes) {
    // Without mounts the only workspace is the real one.
    const bool landlock = tier == sandbox::Tier::landlock;
    auto workspace = fsmount::open_external_workspace(
        landlock ? std::string(fsmount::kUserData) : directory, false
    );
    if (!workspace) {
        std::printf("skipped: no workspace: %s\n", workspace.error().message.c_str());
        return kSkipped;
    }
    if (auto dropped = sandbox::drop_to_gem(); !dropped) {
        throw std::runtime_error(dropped.error().message);
    }
    const base::Log log(STDERR_FILENO, base::LogLevel::off);
    asio::io_context io(1);
    sandbox::SandboxOptions options;
    options.expected_tier = tier;
    auto made = sandbox::make_sandbox(io.get_executor(), options, log);
    if (!made) {
        throw std::runtime_error(made.error().message);
    }
    Soak one{tier, directory, *workspace, std::move(*made)};
    try {
        drive(io, run_commands(one, 1));
    } catch (const std::exception& error) {
        std::printf("skipped: no such sandbox on this machine: %s\n", error.what());
        return kSkipped;
    }
    const bool commands_good =
        measure(io, one, run_commands, kWarmCommands, commands, "commands through one scope");
    const bool scopes_good =
        measure(io, one, run_scopes, kWarmScopes, scopes, "scopes made and released");
    drive(io, one.sandbox->close());
    return commands_good && scopes_good ? 0 : 1;
}

}  // namespace
}  // namespace ars::soak

int main(int argc, char** argv) {
    const std::string tier = argc > 1 ? argv[1] : "";
    if (tier != "namespaces" && tier != "landlock") {
        std::fprintf(stderr, "usage: scope_soak namespaces|landlock [COMMANDS [SCOPES]]\n");
        return 2;
    }
    char directory[] = "/tmp/ars-soak-XXXXXX";
    if (::mkdtemp(directory) == nullptr ||
        (::geteuid() == 0 && ::chown(directory, ars::fsmount::kGemUid, ars::fsmount::kGemGid) != 0
        )) {
        std::perror(directory);
        return 1;
    }
    int status = 1;
    try {
        status = ars::soak::soak(
            tier == "landlock" ? ars::sandbox::Tier::landlock : ars::sandbox::Tier::namespaces,
            directory,
            argc > 2 ? std::atoi(argv[2]) : 10'000,
            argc > 3 ? std::atoi(argv[3]) : 1'000
        );
    } catch (const std::exception& error) {
        std::fprintf(stderr, "scope_soak: %s\n", error.what());
    }
    ::rmdir(directory);
    return status;
}
