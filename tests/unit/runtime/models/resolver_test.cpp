#include "runtime/models/resolver.hpp"

#include "base/fd.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace ars::models {
namespace {

using namespace std::chrono_literals;
using Endpoints = std::vector<boost::asio::ip::tcp::endpoint>;

// A name server on 127.0.0.1 that knows "model.test" (192.0.2.7), denies everything else, or says
// nothing.
class NameServer {
  public:
    explicit NameServer(bool silent = false)
        : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        auto* raw = reinterpret_cast<sockaddr*>(&address);
        EXPECT_EQ(::bind(socket_.get(), raw, size), 0);
        EXPECT_EQ(::getsockname(socket_.get(), raw, &size), 0);
        name_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
        thread_ = std::thread([this, silent] { serve(silent); });
    }
    ~NameServer() {
        stop_ = true;
        ::shutdown(socket_.get(), SHUT_RDWR);
        thread_.join();
    }
    NameServer(const NameServer&) = delete;
    NameServer& operator=(const NameServer&) = delete;
    [[nodiscard]] const std::string& name() const { return name_; }

  private:
    void serve(bool silent) {
        const timeval limit{0, 50'000};
        ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        while (!stop_) {
            char query[512];
            sockaddr_in from{};
            socklen_t size = sizeof from;
            auto* raw = reinterpret_cast<sockaddr*>(&from);
            const ssize_t n = ::recvfrom(socket_.get(), query, sizeof query, 0, raw, &size);
            if (n > 12 && !silent) {
                const std::string answer =
                    answer_to(std::string(query, static_cast<std::size_t>(n)));
                ::sendto(socket_.get(), answer.data(), answer.size(), 0, raw, size);
            }
        }
    }

    static std::string answer_to(const std::string& query) {
        const std::string wanted("\5model\4test\0", 12);
        const bool known = query.substr(12, wanted.size()) == wanted;
        const bool type_a = query[12 + wanted.size() + 1] == 1;
        std::string out = query.substr(0, 2);
        out += std::string("\x81", 1) +
               (known ? '\x80' : '\x83');  // a response; no error, or no such name
        out +=
            std::string("\0\1\0", 3) + (known && type_a ? '\1' : '\0') + std::string("\0\0\0\0", 4);
        const std::size_t question_end = query.find('\0', 12) + 5;
        out += query.substr(12, question_end - 12);
        if (known && type_a) {
            out += std::string("\xC0\x0C\0\1\0\1\0\0\0\x3C\0\4\xC0\0\2\7", 16);
        }
        return out;
    }

    base::Fd socket_;
    std::string name_;
    std::atomic<bool> stop_ = false;
    std::thread thread_;
};

base::Result<Endpoints> resolve(
    const std::string& host, const std::string& servers, std::chrono::milliseconds budget = 30s
) {
    boost::asio::io_context io{1};
    Resolver resolver(io.get_executor(), servers);
    std::optional<base::Result<Endpoints>> out;
    boost::asio::co_spawn(
        io,
        resolver.resolve(host, 443, base::Deadline::after(budget)),
        [&](std::exception_ptr error, base::Result<Endpoints> result) {
            EXPECT_FALSE(error);
            out = std::move(result);
        }
    );
    io.run();
    return std::move(*out);
}

std::vector<std::string> shown(const base::Result<Endpoints>& endpoints) {
    std::vector<std::string> out;
    if (endpoints) {
        for (const auto& endpoint : *endpoints) {
            out.push_back(endpoint.address().to_string() + " " + std::to_string(endpoint.port()));
        }
    }
    return out;
}

TEST(Resolver, AsksNobodyAboutAddressesAndLocalhost) {
    const std::string nobody = "127.0.0.1:1";
    EXPECT_THAT(shown(resolve("192.0.2.1", nobody)), testing::ElementsAre("192.0.2.1 443"));
    EXPECT_THAT(shown(resolve("::1", nobody)), testing::ElementsAre("::1 443"));
    EXPECT_THAT(
        shown(resolve("localhost", nobody)), testing::ElementsAre("127.0.0.1 443", "::1 443")
    );
}

TEST(Resolver, FindsAName) {
    const NameServer server;
    EXPECT_THAT(shown(resolve("model.test", server.name())), testing::ElementsAre("192.0.2.7 443"));
}

TEST(Resolver, TellsThatANameDoesNotExist) {
    const NameServer server;
    const auto endpoints = resolve("other.test.", server.name());
    ASSERT_FALSE(endpoints);
    EXPECT_EQ(endpoints.error().code, "dns_failed");
    EXPECT_EQ(endpoints.error().kind, base::ErrorKind::not_found);
    EXPECT_THAT(endpoints.error().message, testing::HasSubstr("other.test"));
}

TEST(Resolver, StopsAtItsDeadlineWhenNobodyAnswers) {
    const NameServer server(true);
    const auto endpoints = resolve("model.test", server.name(), 200ms);
    ASSERT_FALSE(endpoints);
    EXPECT_EQ(endpoints.error().code, "dns_timeout");
}

TEST(Resolver, ThrowsWhenCancelled) {
    const NameServer server(true);
    boost::asio::io_context io{1};
    Resolver resolver(io.get_executor(), server.name());
    boost::asio::cancellation_signal cancel;
    std::exception_ptr thrown;
    boost::asio::co_spawn(
        io,
        resolver.resolve("model.test", 443, base::Deadline::after(60s)),
        boost::asio::bind_cancellation_slot(
            cancel.slot(),
            [&](std::exception_ptr error, base::Result<Endpoints>) { thrown = error; }
        )
    );
    boost::asio::steady_timer timer(io, 100ms);
    timer.async_wait([&](boost::system::error_code) {
        cancel.emit(boost::asio::cancellation_type::terminal);
    });
    io.run();
    ASSERT_TRUE(thrown);
    EXPECT_THROW(std::rethrow_exception(thrown), boost::system::system_error);
}

}  // namespace
}  // namespace ars::models
