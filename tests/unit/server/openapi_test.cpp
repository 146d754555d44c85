#include "server/openapi.hpp"

#include "tests/unit/server/server_fixture.hpp"

#include <boost/json/array.hpp>

namespace ars::server {
namespace {

class OpenApiDocument : public testing::ServerTest {};

TEST_F(OpenApiDocument, HasEveryRouteOfTheServerAndNoOther) {
    start();
    EXPECT_EQ(openapi_faults(router_->routes()), std::vector<std::string>());
    std::size_t operations = 0;
    const boost::json::object document = openapi_document(router_->routes(), "1.2.3");
    for (const auto& path : document.at("paths").as_object()) {
        operations += path.value().as_object().size();
    }
    EXPECT_EQ(operations, router_->routes().size());
    EXPECT_EQ(document.at("info").at("version"), "1.2.3");
}

TEST_F(OpenApiDocument, NamesWhatIsMissingAndWhatIsTooMuch) {
    start();
    std::vector<ListedRoute> routes = router_->routes();
    routes.push_back({Method::patch, "/api/agent/{slug}/mood", Access::key});
    const auto missing = openapi_faults(routes);
    ASSERT_EQ(missing.size(), 1U);
    EXPECT_NE(missing[0].find("PATCH /api/agent/{slug}/mood"), std::string::npos) << missing[0];
    routes = router_->routes();
    std::erase_if(routes, [](const ListedRoute& route) { return route.pattern == "/metrics"; });
    const auto too_much = openapi_faults(routes);
    ASSERT_EQ(too_much.size(), 1U);
    EXPECT_NE(too_much[0].find("GET /metrics"), std::string::npos) << too_much[0];
}

TEST_F(OpenApiDocument, SaysWhichRoutesNeedNoKey) {
    start({}, two_keys());
    const testing::RawResponse reply = get("/openapi.json");
    EXPECT_EQ(reply.status, 200);
    const boost::json::object document = openapi_document(router_->routes(), "1");
    const auto& paths = document.at("paths").as_object();
    for (const ListedRoute& route : router_->routes()) {
        if (route.method == Method::get) {
            const auto& operation = paths.at(route.pattern).at("get").as_object();
            EXPECT_EQ(operation.contains("security"), route.access == Access::open)
                << route.pattern;
            EXPECT_EQ(
                operation.at("responses").as_object().contains("401"), route.access == Access::key
            ) << route.pattern;
        }
    }
}

}  // namespace
}  // namespace ars::server
