// A real HTTP server on 127.0.0.1 that plays a model provider: scripted answers, strict about what
// it is asked (see strict_request.hpp), and able to misbehave on the wire. For unit and integration
// tests.
#pragma once

#include "tests/support/model_reply.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ars::tests {

struct RecordedRequest {
    std::string target;                                        // "/v1/chat/completions"
    std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
    std::string body;
    boost::json::value json;       // null when the body is not JSON
    std::string fault;             // why it was answered with 400; empty when it was fine
    std::uint64_t connection = 0;  // which connection it came on, from 1

    [[nodiscard]] std::string header(std::string_view name) const;
    // The content of the last message of `role`; "" when there is none.
    [[nodiscard]] std::string last(std::string_view role) const;
};

class ModelServer {
  public:
    // Makes the answer to the n-th valid request, from 0. Called on threads of the server, one at a
    // time.
    using Handler = std::function<ScriptedReply(const RecordedRequest& request, std::size_t n)>;

    struct Options {
        std::uint16_t port = 0;
        std::string certificate_pem;  // with both: https
        std::string key_pem;
        std::string api_key;  // when given, requests without it are answered with 401
        bool strict = true;   // false: any body to any path
    };

    // Listens at once. Throws std::runtime_error when it can't. Without a handler answers come from
    // push().
    explicit ModelServer(Handler handler = {});
    explicit ModelServer(Options options, Handler handler = {});
    ~ModelServer();
    ModelServer(const ModelServer&) = delete;
    ModelServer& operator=(const ModelServer&) = delete;

    // The next answer of the queue; when it runs empty the server answers 400 "nothing is
    // scripted".
    void push(ScriptedReply reply);
    [[nodiscard]] std::uint16_t port() const;
    // "http[s]://127.0.0.1:<port>/v1".
    [[nodiscard]] std::string base_url() const;
    [[nodiscard]] std::vector<RecordedRequest> requests() const;
    // Waits until the client hung up inside an answer for the n-th time; false when `limit` passed
    // first.
    [[nodiscard]] bool wait_for_hang_up(std::size_t n, std::chrono::milliseconds limit) const;
    // Waits until n requests were received.
    [[nodiscard]] bool wait_for_requests(std::size_t n, std::chrono::milliseconds limit) const;
    // Closes every open connection (a provider that drops idle ones).
    void drop_connections();

    struct Impl;

  private:
    std::unique_ptr<Impl> impl_;
};

}  // namespace ars::tests
