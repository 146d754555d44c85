#include "server/http_message.hpp"

#include "server/http_error.hpp"

#include <gtest/gtest.h>

namespace ars::server {
namespace {

TEST(HttpRequest, SplitsPathAndQuery) {
    HttpRequest request;
    request.start(Method::get, "/a/b?x=1&y=%20z+w&x=2", true);
    EXPECT_EQ(request.path(), "/a/b");
    EXPECT_EQ(request.query("x"), "1");
    EXPECT_EQ(request.query("y"), " z w");
    EXPECT_EQ(request.query("none"), std::nullopt);
}

TEST(HttpRequest, TakesTheAbsoluteForm) {
    HttpRequest request;
    request.start(Method::get, "http://host:1/a?b=c", true);
    EXPECT_EQ(request.path(), "/a");
    EXPECT_EQ(request.query("b"), "c");
    request.clear();
    request.start(Method::get, "http://host", true);
    EXPECT_EQ(request.path(), "/");
}

TEST(HttpRequest, KeepsNothingOfTheOneBefore) {
    HttpRequest request;
    request.start(Method::post, "/a", true);
    request.add_header("X-One", "1");
    request.body = "text";
    request.clear();
    request.start(Method::get, "/b", true);
    EXPECT_EQ(request.header("x-one"), std::nullopt);
    EXPECT_EQ(request.path(), "/b");
    EXPECT_TRUE(request.body.empty());
}

TEST(HttpRequest, FindsHeadersInAnyCase) {
    HttpRequest request;
    request.start(Method::get, "/", true);
    request.add_header("Last-Event-ID", "5-1");
    EXPECT_EQ(request.header("last-event-id"), "5-1");
}

TEST(PercentDecode, RefusesBrokenEscapes) {
    EXPECT_EQ(percent_decode("a%2Fb", false), "a/b");
    EXPECT_EQ(percent_decode("a+b", false), "a+b");
    EXPECT_EQ(percent_decode("%", false), std::nullopt);
    EXPECT_EQ(percent_decode("%2", false), std::nullopt);
    EXPECT_EQ(percent_decode("%zz", false), std::nullopt);
}

TEST(ErrorResponse, IsUtf8WhateverItCites) {
    EXPECT_EQ(
        error_response(404, "missing", "no \"a\xFF\"").body,
        "{\"detail\":{\"code\":\"missing\",\"message\":\"no \\\"a\xEF\xBF\xBD\\\"\"}}"
    );
}

TEST(AppendHead, StatesLengthAndConnection) {
    HttpResponse response;
    response.body = "12345";
    response.headers.emplace_back("X-A", "b");
    std::string head;
    append_head(head, response, false, false);
    EXPECT_TRUE(head.starts_with("HTTP/1.1 200 OK\r\nDate: ")) << head;
    EXPECT_NE(head.find(" GMT\r\n"), std::string::npos);
    EXPECT_NE(head.find("\r\nContent-Length: 5\r\n"), std::string::npos);
    EXPECT_NE(head.find("\r\nX-A: b\r\n"), std::string::npos);
    EXPECT_TRUE(head.ends_with("\r\nConnection: close\r\n\r\n"));
}

}  // namespace
}  // namespace ars::server
