#include "sandbox/scope.hpp"

#include "tests/unit/sandbox/scope_fixture.hpp"

#include <boost/json/serialize.hpp>

#include <iostream>

namespace ars::sandbox::testing {
namespace {

TEST(Scope, SmokeTest) {
    Bench bench;
    auto a = bench.acquire();
    ASSERT_TRUE(a) << a.error().message;
    auto o = bench.sh(
        "id; echo $$; ls -l /proc/1/exe; ls /; cat /proc/self/mountinfo; cat /proc/self/status; ls "
        "-l /proc/self/fd"
    );
    std::cout << boost::json::object(o.to_json()) << "\n" << o.out << o.err << "\n";
}

}  // namespace
}  // namespace ars::sandbox::testing
