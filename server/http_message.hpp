// A request and a response as plain values: what routes see of HTTP. No parser or socket type comes
// in here, so that routes compile fast and can be tested without a connection.
#pragma once

#include "base/async.hpp"
#include "base/result.hpp"
#include "runtime/agents/agent.hpp"
#include "runtime/people/caller.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ars::server {

enum class Method : std::uint8_t { get, head, post, put, patch, del, options, other };
[[nodiscard]] std::string_view to_string(Method method);

struct Route;

// The client's end while its request is answered.
class HttpPeer {
  public:
    virtual ~HttpPeer() = default;
    // The next bytes of the body, until the next call; empty after the last. For routes that read
    // their body themselves. Errors: too_large "body_too_large", timeout "request_timeout", invalid
    // "bad_request". Throws operation_aborted when the client left or the server stops.
    virtual base::Task<base::Result<std::string_view>> read_body() = 0;
    // Whether the client hung up: asked by what waits long for something else.
    [[nodiscard]] virtual bool has_left() = 0;
};

// One request. A session fills it, and fills it again for the next one: its buffers keep their
// memory.
class HttpRequest {
  public:
    void clear();
    void start(Method verb, std::string_view target, bool version_1_1);
    void add_header(std::string_view name, std::string_view value);

    // "/api/agent?x=1"
    [[nodiscard]] std::string_view target() const { return text(target_); }
    // Still percent-encoded; without scheme and host when the client sent the absolute form.
    [[nodiscard]] std::string_view path() const;
    [[nodiscard]] std::string_view raw_query() const;
    // The first value of a query parameter, decoded; nothing when it is absent or badly encoded.
    [[nodiscard]] std::optional<std::string> query(std::string_view name) const;
    // The first header of that name (any case).
    [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const;
    [[nodiscard]] std::size_t count_headers(std::string_view name) const;
    [[nodiscard]] people::Caller caller() const { return {user, key_name, key_uid}; }

    Method method = Method::get;
    bool http_1_1 = true;
    bool keep_alive = true;
    std::string body;

    HttpPeer* peer = nullptr;  // set by the session while the request is answered

    // Set by the router.
    const Route* route = nullptr;
    std::vector<std::string> params;  // decoded values of the pattern's {names}, in order
    agents::User user;                // whose rights and files count; empty uid on open routes
    std::string key_name;             // of the API key, "" where none is demanded
    std::string key_uid;              // whose key it is: another one when it acts for `user`

  private:
    struct Slice {
        std::uint32_t offset = 0;
        std::uint32_t size = 0;
    };
    struct Header {
        Slice name;
        Slice value;
    };
    [[nodiscard]] Slice keep(std::string_view bytes);
    [[nodiscard]] std::string_view text(Slice slice) const {
        return std::string_view(head_).substr(slice.offset, slice.size);
    }

    std::string head_;  // all text of the head, one piece after the other
    Slice target_;
    std::vector<Header> headers_;
};

// Where a streamed body goes. write() returns when the kernel took all bytes; it throws
// operation_aborted when the reader left, was too slow, or the server stops.
class StreamWriter {
  public:
    virtual ~StreamWriter() = default;
    virtual base::Task<void> write(std::string_view bytes) = 0;
};

// A body that is made while it is sent.
class StreamBody {
  public:
    virtual ~StreamBody() = default;
    virtual base::Task<void> run(StreamWriter& writer) = 0;
};

struct HttpResponse {
    int status = 200;
    std::string body;
    std::string_view content_type = "application/json";  // of static storage
    std::vector<std::pair<std::string_view, std::string>> headers;
    std::unique_ptr<StreamBody> stream;         // sent instead of `body`
    std::optional<std::uint64_t> stream_bytes;  // when it is known how long `stream` is
    std::string log_note;                       // for the server's log only
};

// Percent-decoding of a path segment or, with `plus_is_space`, of a query part. Nothing on a broken
// escape.
[[nodiscard]] std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space);
[[nodiscard]] bool equal_ignoring_case(std::string_view a, std::string_view b);

// The head of a response up to and with its empty line. `chunked` names a streamed body.
void append_head(std::string& out, const HttpResponse& response, bool keep_alive, bool chunked);

}  // namespace ars::server
