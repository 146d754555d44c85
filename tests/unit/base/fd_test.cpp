#include "base/fd.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ars::base {
namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }
bool is_close_on_exec(int fd) { return (::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0; }

TEST(Fd, ClosesExactlyOnceWhateverHappens) {
    Pipe pipe = make_pipe().value();
    const int raw = pipe.read.get();
    {
        const Fd owner(std::move(pipe.read));
        EXPECT_TRUE(is_open(raw));
        EXPECT_FALSE(static_cast<bool>(pipe.read));
    }
    EXPECT_FALSE(is_open(raw));
}

TEST(Fd, AssigningClosesTheOldOne) {
    Pipe pipe = make_pipe().value();
    const int old_raw = pipe.read.get();
    const int new_raw = pipe.write.get();
    pipe.read = std::move(pipe.write);
    EXPECT_FALSE(is_open(old_raw));
    EXPECT_TRUE(is_open(new_raw));
    EXPECT_EQ(pipe.read.get(), new_raw);
}

TEST(Fd, ReleaseGivesTheOwnershipAway) {
    Pipe pipe = make_pipe().value();
    const int raw = pipe.read.release();
    EXPECT_FALSE(static_cast<bool>(pipe.read));
    pipe.read.reset();
    EXPECT_TRUE(is_open(raw));
    EXPECT_EQ(::close(raw), 0);
}

TEST(FdFactories, MakeDescriptorsThatNoChildInherits) {
    const Pipe pipe = make_pipe().value();
    EXPECT_TRUE(is_close_on_exec(pipe.read.get()));
    EXPECT_TRUE(is_close_on_exec(pipe.write.get()));
    EXPECT_TRUE(is_close_on_exec(duplicate(pipe.read.get()).value().get()));
    EXPECT_TRUE(is_close_on_exec(open_file("/dev/null", O_RDONLY).value().get()));
}

TEST(FdFactories, DuplicatesStayClearOfTheStandardStreams) {
    const Fd copy = duplicate(STDERR_FILENO).value();
    EXPECT_GT(copy.get(), STDERR_FILENO);
}

TEST(FdFactories, FailWithTheErrnoAndTheName) {
    const auto missing = open_file("/nowhere/at/all", O_RDONLY);
    ASSERT_FALSE(missing.has_value());
    EXPECT_EQ(missing.error().sys_errno, ENOENT);
    EXPECT_NE(missing.error().message.find("/nowhere/at/all"), std::string::npos);
    EXPECT_EQ(duplicate(-1).error().sys_errno, EBADF);
}

// More than a pipe holds, so that both sides meet short transfers.
TEST(WholeBufferIo, MovesMoreThanAPipeHolds) {
    Pipe pipe = make_pipe().value();
    std::string sent;
    for (int i = 0; sent.size() < 1'000'000; ++i) {
        sent += std::to_string(i) + "\n";
    }
    const int write_end = pipe.write.get();
    Result<void> written;
    std::thread writer([&] {
        written = write_all(write_end, sent);
        pipe.write.reset();
    });
    const auto received = read_to_end(pipe.read.get(), sent.size());
    writer.join();
    EXPECT_TRUE(written.has_value());
    ASSERT_TRUE(received.has_value());
    EXPECT_TRUE(*received == sent);
}

TEST(WholeBufferIo, RefusesOneByteOverTheBound) {
    Pipe pipe = make_pipe().value();
    ASSERT_TRUE(write_all(pipe.write.get(), "12345").has_value());
    pipe.write.reset();
    const auto received = read_to_end(pipe.read.get(), 4);
    ASSERT_FALSE(received.has_value());
    EXPECT_EQ(received.error().kind, ErrorKind::too_large);
    EXPECT_EQ(received.error().code, "file_too_large");
}

TEST(WholeBufferIo, ReportsAFullDevice) {
    const Fd full = open_file("/dev/full", O_WRONLY).value();
    const auto written = write_all(full.get(), "x");
    ASSERT_FALSE(written.has_value());
    EXPECT_EQ(written.error().sys_errno, ENOSPC);
}

class ReadFile : public testing::Test {
  protected:
    void SetUp() override {
        const Fd file(::mkostemp(path_.data(), O_CLOEXEC));
        ASSERT_TRUE(static_cast<bool>(file));
        ASSERT_TRUE(write_all(file.get(), "hello").has_value());
    }
    void TearDown() override { ::unlink(path_.c_str()); }

    std::string path_ = testing::TempDir() + "ars-fd-test-XXXXXX";
};

TEST_F(ReadFile, GivesTheWholeText) { EXPECT_EQ(read_file(path_, 5).value(), "hello"); }

TEST_F(ReadFile, NamesTheFileThatIsTooLarge) {
    const auto text = read_file(path_, 4);
    ASSERT_FALSE(text.has_value());
    EXPECT_EQ(text.error().code, "file_too_large");
    EXPECT_NE(text.error().message.find(path_), std::string::npos);
}

TEST_F(ReadFile, RefusesADirectory) {
    EXPECT_EQ(read_file(testing::TempDir(), 1000).error().sys_errno, EISDIR);
}

}  // namespace
}  // namespace ars::base
