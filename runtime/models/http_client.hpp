// HTTP/1.1 to one provider: connections (plain or verified TLS), a POST, an answer read piece by
// piece. The only door of this folder to Beast and OpenSSL's sockets. It follows no redirect and
// knows nothing of models.
#pragma once

#include "base/async.hpp"
#include "base/result.hpp"
#include "runtime/models/endpoint.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ars::models {

struct HttpSettings {
    Endpoint endpoint;
    std::string ca_file;                        // empty: see ca_bundle.hpp
    std::chrono::milliseconds connect_timeout;  // name look-up, connect and TLS handshake together
    std::chrono::milliseconds
        first_byte_timeout;  // from the sent request to the head of the answer
};

struct HttpRequest {
    std::string_view path;  // appended to the endpoint's
    std::vector<std::pair<std::string, std::string>> headers;
    // JSON, asked for once for each connection that is tried and let go when it is sent: the body
    // of a long conversation is not held while its answer is waited for.
    std::function<std::string()> body;
};

// Errors of both classes: "http_timeout", "http_unreachable" (name, connect, reset: worth a retry),
// "http_truncated" (the peer went away inside the answer), "http_malformed", "http_too_large",
// "tls_refused" and "no_ca_bundle" (final). Cancelled calls throw operation_aborted. Destroying an
// answer that was not read to its end closes its socket at once.
class HttpResponse {
  public:
    struct Impl;
    explicit HttpResponse(std::unique_ptr<Impl> impl);
    ~HttpResponse();
    HttpResponse(const HttpResponse&) = delete;
    HttpResponse& operator=(const HttpResponse&) = delete;

    [[nodiscard]] int status() const;
    [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const;
    // When the request had been written.
    [[nodiscard]] std::chrono::steady_clock::time_point sent_at() const;
    // The next bytes of the body, empty at its end.
    base::Task<base::Result<std::string>> read(base::Deadline deadline);
    // The caller has all it needs: reads what little may be left, so that the connection can be
    // used again, or gives up on it. Never fails.
    base::Task<void> finish();

  private:
    std::unique_ptr<Impl> impl_;
};

class HttpClient {
  public:
    HttpClient(base::asio::any_io_executor executor, HttpSettings settings);
    ~HttpClient();  // after all answers
    HttpClient(const HttpClient&) = delete;
    HttpClient& operator=(const HttpClient&) = delete;

    // Sends one POST and returns with the head of the answer. An idle connection is used again when
    // there is one; if it fails before any byte of the answer, a fresh one is used instead.
    base::Task<base::Result<std::unique_ptr<HttpResponse>>> post(
        HttpRequest request, base::Deadline deadline
    );

    struct Impl;

  private:
    std::unique_ptr<Impl> impl_;
};

}  // namespace ars::models
