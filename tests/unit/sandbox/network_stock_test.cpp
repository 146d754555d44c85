// A network and its IPC namespace serve again only when nothing of the old scope is left in them.
#include "tests/unit/sandbox/program_fixture.hpp"

namespace ars::sandbox::testing {
namespace {

class NetworkStockTest : public ProgramTest {
  protected:
    void release() { bench.run_void(bench.sandbox().release({"alice", "root", "default"})); }
    std::string ipc_namespace() { return bench.sh("readlink /proc/self/ns/ipc").out; }
};

TEST_F(NetworkStockTest, ServesAgainWhenNothingIsLeft) {
    const std::string first = ipc_namespace();
    ASSERT_TRUE(first.starts_with("ipc:[")) << first;
    release();
    EXPECT_EQ(ipc_namespace(), first);
}

TEST_F(NetworkStockTest, IsNeverSharedByTwoScopes) {
    const std::string first = ipc_namespace();
    const Outcome other = bench.command(shell("readlink /proc/self/ns/ipc"), "another");
    EXPECT_TRUE(other.out.starts_with("ipc:[")) << other.out;
    EXPECT_NE(other.out, first);
}

TEST_F(NetworkStockTest, ObjectsThatOutliveTheirProcessesAreNotFoundByTheNextScope) {
    for (const char* kind : {"memory", "semaphores", "queue", "named queue"}) {
        ASSERT_EQ(program("left_object", kind).out, "made\n") << kind;
        ASSERT_EQ(program("left_object", kind).out, "found\n") << kind;
        release();
        EXPECT_EQ(program("left_object", kind).out, "made\n") << kind;
        release();
    }
}

}  // namespace
}  // namespace ars::sandbox::testing
