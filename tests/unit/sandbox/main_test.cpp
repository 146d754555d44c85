// Beside the tests, the program can be a server that is killed by one of them.
#include "sandbox/scope.hpp"
#include "tests/unit/sandbox/scope_fixture.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include <unistd.h>

namespace {

// A server to be killed: holds a scope in which three processes sleep `seconds`, and says when they
// do.
void hold_a_scope(const std::string& seconds, std::string_view tier) {
    using namespace ars::sandbox::testing;
    Bench bench;
    if (tier == "landlock") {
        bench.tier() = ars::sandbox::Tier::landlock;
    }
    const std::string sleep = "sleep " + seconds;
    auto command =
        shell(sleep + " & setsid " + sleep + " & (" + sleep + " & ) ; echo up; exec " + sleep);
    command.on_output = [](int, std::string_view) { return ::write(1, "ready\n", 6) == 6; };
    bench.command(std::move(command));
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 4 && std::string_view(argv[1]) == "hold-a-scope") {
        hold_a_scope(argv[2], argv[3]);
        return 0;
    }
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
