// Bytes to HttpRequest: the one place that knows Beast's parser. It decides what is a well-formed
// request and nothing else; it keeps no bytes and does no I/O.
#pragma once

#include "server/http_message.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace ars::server {

class RequestParser {
  public:
    RequestParser(HttpRequest& request, std::size_t head_bytes, std::size_t body_bytes);
    ~RequestParser();
    RequestParser(const RequestParser&) = delete;
    RequestParser& operator=(const RequestParser&) = delete;

    enum class State : std::uint8_t {
        need_more,
        done,
        malformed,       // 400
        head_too_large,  // 431: the head, or what stands around a chunk of the body
        body_too_large,  // 413
        unsupported,     // 400: a transfer coding other than chunked
    };
    // Begins a new request and clears the value it fills.
    void reset();
    // Parses from `bytes` and returns how many it consumed; the rest has to be given again, with
    // more after it. That is never more than `head_bytes`, and how a request is cut does not
    // matter.
    std::size_t put(std::string_view bytes, State& state);
    [[nodiscard]] bool head_done() const;
    // True once a byte of the request was given.
    [[nodiscard]] bool started() const;
    // True when the whole request was given.
    [[nodiscard]] bool done() const;
    // Once the head is done: how much body this request may have. False when it declares more.
    [[nodiscard]] bool limit_body(std::uint64_t bytes);

  private:
    std::size_t put_head(std::string_view bytes, State& state);

    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace ars::server
