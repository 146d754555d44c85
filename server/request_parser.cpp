#include "server/request_parser.hpp"

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include <optional>

namespace ars::server {

namespace http = boost::beast::http;
using boost::beast::error_code;

namespace {

Method method_of(http::verb verb) {
    switch (verb) {
        case http::verb::get:
            return Method::get;
        case http::verb::head:
            return Method::head;
        case http::verb::post:
            return Method::post;
        case http::verb::put:
            return Method::put;
        case http::verb::patch:
            return Method::patch;
        case http::verb::delete_:
            return Method::del;
        case http::verb::options:
            return Method::options;
        default:
            return Method::other;
    }
}

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

// Beast's parser with a sink that copies into our value: no container of its own, no allocation a
// field.
class Sink final : public http::basic_parser<true> {
  public:
    Sink(HttpRequest& request, std::size_t head_bytes, std::size_t body_bytes) : request_(request) {
        // Beast counts only what it is given at once; the bound is held in RequestParser::put.
        header_limit(static_cast<std::uint32_t>(head_bytes) + 1);
        body_limit(boost::none);  // Beast's can't be raised once the head is known
        most_ = body_bytes;
        eager(true);
    }

    [[nodiscard]] bool unsupported() const { return unsupported_; }
    void limit(std::uint64_t most) { most_ = most; }

  private:
    void
    on_request_impl(http::verb verb, boost::beast::string_view, boost::beast::string_view target, int version, error_code&)
        override {
        request_.start(method_of(verb), view(target), version >= 11);
        http_1_1_ = version >= 11;
    }
    void on_response_impl(int, boost::beast::string_view, int, error_code&) override {}
    void on_field_impl(
        http::field field,
        boost::beast::string_view name,
        boost::beast::string_view value,
        error_code& ec
    ) override {
        if (head_over_) {
            return;  // a trailer: nobody judged it, so nobody may act on it
        }
        if (field == http::field::transfer_encoding) {
            // "gzip, chunked" would leave a body that nobody here can read.
            unsupported_ = !equal_ignoring_case(view(value), "chunked");
            // HTTP/1.0 has no transfer codings: who forwarded this sees the body end elsewhere.
            if (unsupported_ || !http_1_1_) {
                ec = http::error::bad_transfer_encoding;
                return;
            }
        }
        request_.add_header(view(name), view(value));
    }
    void on_header_impl(error_code&) override {
        request_.keep_alive = keep_alive();
        head_over_ = true;
    }
    void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
    std::size_t on_body_impl(boost::beast::string_view body, error_code& ec) override {
        received_ += body.size();
        if (received_ > most_) {
            ec = http::error::body_limit;
            return 0;
        }
        request_.body += view(body);
        return body.size();
    }
    void on_chunk_header_impl(std::uint64_t, boost::beast::string_view, error_code&) override {}
    std::size_t on_chunk_body_impl(std::uint64_t, boost::beast::string_view body, error_code& ec)
        override {
        return on_body_impl(body, ec);
    }
    void on_finish_impl(error_code&) override {}

    HttpRequest& request_;
    std::uint64_t most_ = 0;
    std::uint64_t received_ = 0;
    bool http_1_1_ = true;
    bool head_over_ = false;
    bool unsupported_ = false;
};

}  // namespace

struct RequestParser::Impl {
    HttpRequest& request;
    std::size_t head_bytes;
    std::size_t body_bytes;
    std::optional<Sink> sink;
    bool started = false;

    [[nodiscard]] State state(const error_code& ec) const {
        if (!ec || ec == http::error::need_more) {
            return sink->is_done() ? State::done : State::need_more;
        }
        if (ec == http::error::header_limit) {
            return State::head_too_large;
        }
        if (ec == http::error::body_limit) {
            return State::body_too_large;
        }
        return sink->unsupported() ? State::unsupported : State::malformed;
    }
};

RequestParser::RequestParser(HttpRequest& request, std::size_t head_bytes, std::size_t body_bytes)
    : impl_(new Impl{request, head_bytes, body_bytes, std::nullopt}) {
    reset();
}

RequestParser::~RequestParser() = default;

void RequestParser::reset() {
    impl_->request.clear();
    impl_->sink.emplace(impl_->request, impl_->head_bytes, impl_->body_bytes);
    impl_->started = false;
}

bool RequestParser::head_done() const { return impl_->sink->is_header_done(); }

bool RequestParser::started() const { return impl_->started; }

bool RequestParser::done() const { return impl_->sink->is_done(); }

bool RequestParser::limit_body(std::uint64_t bytes) {
    impl_->sink->limit(bytes);
    const auto declared = impl_->sink->content_length();
    return !declared || *declared <= bytes;
}

std::size_t RequestParser::put(std::string_view bytes, State& state) {
    impl_->started = impl_->started || !bytes.empty();
    state = State::need_more;
    std::size_t used = head_done() ? 0 : put_head(bytes, state);
    // A piece no longer than a head at a time: a chunk's first line and the trailers are consumed
    // whole or not at all, and one that fills such a piece is too long.
    while (state == State::need_more && head_done() && used < bytes.size()) {
        const std::string_view piece = bytes.substr(used, impl_->head_bytes);
        error_code ec;
        const std::size_t taken =
            impl_->sink->put(boost::asio::const_buffer(piece.data(), piece.size()), ec);
        used += taken;
        state = impl_->state(ec);
        if (state == State::need_more && taken == 0 && piece.size() == impl_->head_bytes) {
            state = State::head_too_large;
        }
        if (taken == 0) {
            break;
        }
    }
    return used;
}

// Each time from its first byte, because Beast judges a head that it gets in pieces by other rules:
// it bounds the pieces and not the whole, and looks at a piece only when the end has come.
std::size_t RequestParser::put_head(std::string_view bytes, State& state) {
    impl_->request.clear();
    impl_->sink.emplace(impl_->request, impl_->head_bytes, impl_->body_bytes);
    const std::string_view piece = bytes.substr(0, impl_->head_bytes);
    error_code ec;
    const std::size_t used =
        impl_->sink->put(boost::asio::const_buffer(piece.data(), piece.size()), ec);
    state = impl_->state(ec);
    if (head_done() || state != State::need_more) {
        return used;
    }
    if (piece.size() == impl_->head_bytes) {
        state = State::head_too_large;
    }
    return 0;
}

}  // namespace ars::server
