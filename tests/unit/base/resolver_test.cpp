#include "base/resolver.hpp"

#include "tests/support/name_server.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace ars::base {
namespace {

using namespace std::chrono_literals;
using Endpoints = std::vector<boost::asio::ip::tcp::endpoint>;

using ars::tests::NameServer;

const NameServer::Table kNames = {{"model.test", {"192.0.2.7"}}};

Result<Endpoints> resolve(
    const std::string& host, const std::string& servers, std::chrono::milliseconds budget = 30s
) {
    boost::asio::io_context io{1};
    Resolver resolver(io.get_executor(), servers);
    std::optional<Result<Endpoints>> out;
    boost::asio::co_spawn(
        io,
        resolver.resolve(host, 443, Deadline::after(budget)),
        [&](std::exception_ptr error, Result<Endpoints> result) {
            EXPECT_FALSE(error);
            out = std::move(result);
        }
    );
    io.run();
    return std::move(*out);
}

std::vector<std::string> shown(const Result<Endpoints>& endpoints) {
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
    const NameServer server(kNames);
    EXPECT_THAT(shown(resolve("model.test", server.name())), testing::ElementsAre("192.0.2.7 443"));
}

TEST(Resolver, TellsThatANameDoesNotExist) {
    const NameServer server(kNames);
    const auto endpoints = resolve("other.test.", server.name());
    ASSERT_FALSE(endpoints);
    EXPECT_EQ(endpoints.error().code, "dns_failed");
    EXPECT_EQ(endpoints.error().kind, ErrorKind::not_found);
    EXPECT_THAT(endpoints.error().message, testing::HasSubstr("other.test"));
}

// A name that was checked must not become another one on its way to the name server.
TEST(Resolver, AsksForNothingButTheNameWhereTheSearchListIsIgnored) {
    const NameServer server(kNames);
    boost::asio::io_context io{1};
    Resolver resolver(io.get_executor(), server.name(), SearchList::ignored);
    std::optional<Result<Endpoints>> out;
    boost::asio::co_spawn(
        io,
        resolver.resolve("model", 443, Deadline::after(30s)),
        [&](std::exception_ptr, Result<Endpoints> result) { out = std::move(result); }
    );
    io.run();
    ASSERT_TRUE(out && !*out);
    EXPECT_EQ(out->error().kind, ErrorKind::not_found);
    EXPECT_THAT(server.asked(), testing::Each("model"));
}

TEST(Resolver, StopsAtItsDeadlineWhenNobodyAnswers) {
    const NameServer server(kNames, true);
    const auto endpoints = resolve("model.test", server.name(), 200ms);
    ASSERT_FALSE(endpoints);
    EXPECT_EQ(endpoints.error().code, "dns_timeout");
}

TEST(Resolver, ThrowsWhenCancelled) {
    const NameServer server(kNames, true);
    boost::asio::io_context io{1};
    Resolver resolver(io.get_executor(), server.name());
    boost::asio::cancellation_signal cancel;
    std::exception_ptr thrown;
    boost::asio::co_spawn(
        io,
        resolver.resolve("model.test", 443, Deadline::after(60s)),
        boost::asio::bind_cancellation_slot(
            cancel.slot(), [&](std::exception_ptr error, Result<Endpoints>) { thrown = error; }
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
}  // namespace ars::base
