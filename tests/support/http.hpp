// A small blocking HTTP client for tests: one connection a request, loopback only, event streams
// included.
#pragma once

#include <boost/json/value.hpp>

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace ars::tests {

struct HttpReply {
    int status = 0;
    std::map<std::string, std::string> headers;  // names in lower case
    std::string body;
    [[nodiscard]] boost::json::value json() const;
};

using Headers = std::map<std::string, std::string>;

// Throws std::runtime_error when the connection fails or the limit passes.
HttpReply http(
    int port,
    const std::string& method,
    const std::string& target,
    const std::string& body = {},
    const Headers& headers = {},
    std::chrono::milliseconds limit = std::chrono::seconds(30)
);
HttpReply http_json(
    int port,
    const std::string& method,
    const std::string& target,
    const boost::json::value& body,
    Headers headers = {}
);

struct SseEvent {
    std::string id;
    std::string type;
    boost::json::value data;
};
// Those of a body that was read whole.
std::vector<SseEvent> parse_events(std::string text);
// True when every id is above the one before it.
bool ids_rise(const std::vector<SseEvent>& events);
// Reads a stream until it closes, until `stop_after` events came, or the limit passes (throws).
std::vector<SseEvent> read_events(
    int port,
    const std::string& target,
    const Headers& headers = {},
    std::size_t stop_after = SIZE_MAX,
    std::chrono::milliseconds limit = std::chrono::seconds(60)
);

}  // namespace ars::tests
