// A scope in which the programs of tests/sandbox_programs can be run.
#pragma once

#include "tests/unit/sandbox/scope_fixture.hpp"

#include <fstream>
#include <set>

namespace ars::sandbox::testing {

class ProgramTest : public ::testing::Test {
  protected:
    void SetUp() override { ARS_NEEDS_SCOPES(bench); }
    void TearDown() override {
        for (const std::string& name : copied_) {
            (void)::unlink((bench.workspace() + "/" + name).c_str());
        }
    }
    // Copies the program into the workspace; its guest path.
    std::string path(const std::string& name) {
        const std::string copy = bench.workspace() + "/" + name;
        if (copied_.insert(name).second) {
            {
                std::ifstream from(
                    std::string(ARS_SANDBOX_PROGRAMS) + "/" + name, std::ios::binary
                );
                std::ofstream to(copy, std::ios::binary);
                to << from.rdbuf();
            }
            ::chmod(copy.c_str(), 0755);
        }
        return std::string(fsmount::kUserData) + "/" + name;
    }
    Outcome program(
        const std::string& name, const std::string& arguments, base::milliseconds timeout = 20s
    ) {
        return bench.sh(path(name) + " " + arguments, timeout);
    }

    // Runs the commands at the same time, to the end of all.
    std::vector<Outcome> together(std::vector<Command> commands) {
        std::vector<Outcome> outcomes(commands.size());
        bench.run_void(run_all(bench.scope(), std::move(commands), outcomes));
        return outcomes;
    }

    Bench bench;

  private:
    static base::Task<void> run_into(
        std::shared_ptr<Scope> scope, Command command, Outcome& outcome
    ) {
        outcome = co_await scope->run(std::move(command));
    }
    static base::Task<void> run_all(
        std::shared_ptr<Scope> scope, std::vector<Command> commands, std::vector<Outcome>& outcomes
    ) {
        base::TaskGroup group(co_await asio::this_coro::executor);
        for (std::size_t i = 0; i < commands.size(); ++i) {
            group.spawn(run_into(scope, std::move(commands[i]), outcomes[i]));
        }
        co_await group.join();
    }
    std::set<std::string> copied_;
};

}  // namespace ars::sandbox::testing
