// Both backends behave the same: bytes in order, the end once, nothing after a stop.
#include "sandbox/child_io.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <gtest/gtest.h>

#include <csignal>
#include <optional>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ars::sandbox {
namespace {

using namespace std::chrono_literals;

class ChildIoTest : public ::testing::TestWithParam<IoBackend> {
  protected:
    void SetUp() override {
        std::signal(SIGPIPE, SIG_IGN);
        auto made = make_child_io(io.get_executor(), GetParam());
        if (!made) {
            GTEST_SKIP() << "no io_uring on this host: " << made.error().message;
        }
        child_io = std::move(*made);
    }
    boost::asio::io_context io{1};
    std::unique_ptr<ChildIo> child_io;
};

TEST_P(ChildIoTest, ReadsToTheEndAndEndsOnce) {
    auto pipe = base::make_pipe();
    std::string seen;
    int ends = 0;
    auto stream = child_io->read(
        std::move(pipe->read),
        [&](std::string_view bytes) { seen += bytes; },
        [&](int error) { ends += error == 0 ? 1 : 100; }
    );
    ASSERT_TRUE(base::write_all(pipe->write.get(), "hello"));
    pipe->write.reset();
    io.run();
    EXPECT_EQ(seen, "hello");
    EXPECT_EQ(ends, 1);
}

TEST_P(ChildIoTest, NonBlockingDescriptorIsWaitedForAsWell) {
    auto pipe = base::make_pipe();
    ASSERT_EQ(::fcntl(pipe->read.get(), F_SETFL, O_NONBLOCK), 0);
    std::string seen;
    std::optional<int> end;
    auto stream = child_io->read(
        std::move(pipe->read),
        [&](std::string_view bytes) { seen += bytes; },
        [&](int error) { end = error; }
    );
    io.run_for(20ms);
    ASSERT_TRUE(base::write_all(pipe->write.get(), "late"));
    pipe->write.reset();
    io.restart();
    io.run();
    EXPECT_EQ(seen, "late");
    EXPECT_EQ(end, 0);
}

TEST_P(ChildIoTest, WritesMoreThanAPipeHolds) {
    auto pipe = base::make_pipe();
    const std::string sent(2'000'000, 'y');
    std::size_t seen = 0;
    std::optional<int> written;
    auto reader = child_io->read(
        std::move(pipe->read), [&](std::string_view bytes) { seen += bytes.size(); }, [](int) {}
    );
    auto writer =
        child_io->write(std::move(pipe->write), sent, [&](int error) { written = error; });
    io.run();
    EXPECT_EQ(seen, sent.size());
    EXPECT_EQ(written, 0);
}

TEST_P(ChildIoTest, WriterToAClosedPipeEndsWithEpipe) {
    auto pipe = base::make_pipe();
    pipe->read.reset();
    std::optional<int> written;
    auto writer = child_io->write(std::move(pipe->write), "x", [&](int error) { written = error; });
    io.run();
    EXPECT_EQ(written, EPIPE);
}

TEST_P(ChildIoTest, StoppedReaderIsNeverCalledAndClosesItsPipe) {
    auto pipe = base::make_pipe();
    auto stream = child_io->read(
        std::move(pipe->read), [](std::string_view) { ADD_FAILURE(); }, [](int) { ADD_FAILURE(); }
    );
    io.run_for(20ms);
    stream.reset();
    io.restart();
    io.run();  // returns: nothing is left to wait for
    EXPECT_FALSE(base::write_all(pipe->write.get(), "x")) << "EPIPE";
}

TEST_P(ChildIoTest, CallbackMayStopItsOwnStream) {
    auto pipe = base::make_pipe();
    std::unique_ptr<ChildStream> stream;
    int calls = 0;
    stream = child_io->read(
        std::move(pipe->read),
        [&](std::string_view) {
            ++calls;
            stream.reset();
        },
        [](int) { ADD_FAILURE(); }
    );
    ASSERT_TRUE(base::write_all(pipe->write.get(), "a"));
    io.run();
    EXPECT_EQ(calls, 1);
}

TEST_P(ChildIoTest, SeqpacketGivesOneMessagePerCall) {
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    base::Fd theirs(pair[1]);
    std::vector<std::string> seen;
    auto stream = child_io->read(
        base::Fd(pair[0]), [&](std::string_view bytes) { seen.emplace_back(bytes); }, [](int) {}
    );
    for (const char* text : {"one", "two"}) {
        ASSERT_EQ(::send(theirs.get(), text, 3, 0), 3);
    }
    theirs.reset();
    io.run();
    EXPECT_EQ(seen, (std::vector<std::string>{"one", "two"}));
}

INSTANTIATE_TEST_SUITE_P(
    Backends,
    ChildIoTest,
    ::testing::Values(IoBackend::io_uring, IoBackend::epoll),
    [](const auto& info) { return info.param == IoBackend::epoll ? "epoll" : "io_uring"; }
);

}  // namespace
}  // namespace ars::sandbox
