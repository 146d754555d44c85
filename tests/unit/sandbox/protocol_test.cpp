#include "sandbox/protocol.hpp"

#include "sandbox/init_spec.hpp"

#include <gtest/gtest.h>

#include <sys/socket.h>

namespace ars::sandbox {
namespace {

TEST(Protocol, SpecComesBackAsItWasSent) {
    InitSpec spec;
    spec.hostname = "ars";
    spec.own_network = false;
    spec.proxy_listener = true;
    spec.processes = 12;
    spec.file_size = 1ULL << 40U;
    spec.open_files = 99;
    spec.seccomp = std::string("\0\1\2", 3);
    fsmount::Mount mount;
    mount.kind = fsmount::MountKind::tmpfs;
    mount.guest = "/tmp";
    mount.read_only = false;
    mount.size_bytes = 77;
    mount.mode = 01777;
    spec.mounts = {mount, mount};
    spec.mounts[1].fd = std::make_shared<base::Fd>(::dup(0));
    std::vector<base::Fd> fds;
    fds.emplace_back(::dup(0));
    const int number = fds.front().get();
    const auto decoded = decode_spec(encode_spec(spec), std::move(fds));
    ASSERT_TRUE(decoded);
    EXPECT_EQ(decoded->seccomp, spec.seccomp);
    EXPECT_EQ(decoded->file_size, spec.file_size);
    EXPECT_FALSE(decoded->own_network);
    EXPECT_TRUE(decoded->proxy_listener);
    ASSERT_EQ(decoded->mounts.size(), 2U);
    EXPECT_EQ(decoded->mounts[0].mode, 01777U);
    EXPECT_FALSE(decoded->mounts[0].fd);
    EXPECT_EQ(decoded->mounts[1].fd->get(), number);
}

TEST(Protocol, SpecThatIsCutShortIsAnErrorAtEveryLength) {
    InitSpec spec;
    spec.hostname = "ars";
    spec.mounts.resize(1);
    const std::string bytes = encode_spec(spec);
    for (std::size_t n = 0; n < bytes.size(); ++n) {
        EXPECT_FALSE(decode_spec(std::string_view(bytes).substr(0, n), {})) << n;
    }
    EXPECT_TRUE(decode_spec(bytes, {}));
}

TEST(Protocol, MessageCarriesTextAndDescriptors) {
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    const base::Fd a(pair[0]);
    base::Fd b(pair[1]);
    Message message;
    message.tag = Tag::start;
    message.id = 5;
    const std::vector<int> fds{0, 0};
    ASSERT_EQ(send_message(a.get(), message, encode_start({"/", {"true"}, {"A=b"}}), fds), 0);
    const auto received = receive_message(b.get());
    ASSERT_TRUE(received);
    EXPECT_EQ(received->message.id, 5U);
    EXPECT_EQ(received->fds.size(), 2U);
    const auto start = decode_start(received->text);
    ASSERT_TRUE(start);
    EXPECT_EQ(start->argv, std::vector<std::string>{"true"});
    b.reset();
    EXPECT_EQ(send_message(a.get(), message, {}, {}), EPIPE);
}

}  // namespace
}  // namespace ars::sandbox
