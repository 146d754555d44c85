#include "runtime/models/http_client.hpp"

#include "base/limits.hpp"
#include "base/resolver.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "runtime/models/tls_context.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>

#include <algorithm>
#include <array>

#include <fcntl.h>
#include <sys/socket.h>

namespace ars::models {

namespace {

namespace asio = base::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using base::Deadline;
using base::ErrorKind;
using beast::error_code;
using std::chrono::steady_clock;

// As many as runs that ask at once by default: a new connection costs more than the rest of a call.
constexpr std::size_t kIdleConnections = 256;
constexpr auto kIdleTime = std::chrono::seconds(30);  // below what servers and load balancers allow
constexpr auto kDrainTime = std::chrono::milliseconds(50);
constexpr std::size_t kHeadBytes = 32 * base::limits::kKiB;
constexpr std::size_t kReadBytes = 4 * base::limits::kKiB;
constexpr std::size_t kFirstReadBytes = 512;  // held by every call that waits for its answer
// A token costs about 250 bytes on the wire: what is far above any reply is not one.
constexpr std::uint64_t kStreamBytes = 16 * base::limits::kModelReplyBytes;

auto as_result() { return asio::as_tuple(asio::use_awaitable); }

void throw_if_aborted(error_code error) {
    if (error == asio::error::operation_aborted) {
        throw boost::system::system_error(error);
    }
}

// A body that hands over what came instead of gathering it.
struct PieceBody {
    using value_type = std::string;
    class reader {
      public:
        template <bool IsRequest, class Fields>
        reader(http::header<IsRequest, Fields>&, value_type& piece) : piece_(piece) {}
        void init(const boost::optional<std::uint64_t>&, error_code& error) { error = {}; }
        template <class Buffers>
        std::size_t put(const Buffers& buffers, error_code& error) {
            error = {};
            std::size_t taken = 0;
            for (const asio::const_buffer part : beast::buffers_range_ref(buffers)) {
                piece_.append(static_cast<const char*>(part.data()), part.size());
                taken += part.size();
            }
            return taken;
        }
        void finish(error_code& error) { error = {}; }

      private:
        value_type& piece_;
    };
};
using Parser = http::response_parser<PieceBody>;

struct Connection {
    explicit Connection(const asio::any_io_executor& executor) : tcp(executor) {}

    [[nodiscard]] bool usable() const {
        char byte = 0;
        const int fd = const_cast<beast::tcp_stream&>(tcp).socket().native_handle();
        // Anything but "nothing there" means that the peer closed or says something nobody asked
        // for.
        return ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
    }

    beast::tcp_stream tcp;
    std::optional<asio::ssl::stream<beast::tcp_stream&>> tls;
    beast::flat_buffer buffer{2 * kHeadBytes};
    steady_clock::time_point idle_since;
};
using ConnectionPtr = std::unique_ptr<Connection>;

base::Error unreachable(const Endpoint& endpoint, const std::string& why) {
    return {ErrorKind::unavailable, "http_unreachable", endpoint.text() + ": " + why};
}

base::Error timed_out(const Endpoint& endpoint, const std::string& why) {
    return {ErrorKind::timeout, "http_timeout", endpoint.text() + ": " + why};
}

base::Error read_error(const Endpoint& endpoint, error_code error) {
    if (error == beast::error::timeout) {
        return timed_out(endpoint, "the provider sent nothing in the time allowed");
    }
    if (error == http::error::body_limit || error == http::error::header_limit ||
        error == http::error::buffer_overflow) {
        return {
            ErrorKind::too_large,
            "http_too_large",
            endpoint.text() + ": the answer is over its bound"
        };
    }
    if (error == http::error::end_of_stream || error == http::error::partial_message ||
        error == asio::error::eof || error == asio::error::connection_reset ||
        error == asio::error::broken_pipe || error == asio::ssl::error::stream_truncated) {
        return {
            ErrorKind::unavailable,
            "http_truncated",
            endpoint.text() + ": the provider closed the connection early"
        };
    }
    return {ErrorKind::unavailable, "http_malformed", endpoint.text() + ": " + error.message()};
}

// What is already buffered goes through the parser. Beast's own async_read_some is not used: it
// reads on until the parser wants nothing more, and so holds back what has come of a stream.
error_code parse_buffered(Connection& link, Parser& parser) {
    error_code error;
    if (link.buffer.size() > 0 && !parser.is_done()) {
        link.buffer.consume(parser.put(link.buffer.data(), error));
    }
    return error == http::error::need_more ? error_code() : error;
}

// Reads once and parses. The end of the stream is fine where the answer is ended by it.
base::Task<error_code> read_once(Connection& link, Parser& parser) {
    const std::size_t room = parser.got_some() ? kReadBytes : kFirstReadBytes;
    if (link.buffer.size() + room > link.buffer.max_size()) {
        co_return http::error::buffer_overflow;
    }
    const auto space = link.buffer.prepare(room);
    error_code error;
    std::size_t count = 0;
    if (link.tls) {
        std::tie(error, count) = co_await link.tls->async_read_some(space, as_result());
    } else {
        std::tie(error, count) = co_await link.tcp.async_read_some(space, as_result());
    }
    throw_if_aborted(error);
    link.buffer.commit(count);
    const bool over = error == asio::error::eof || error == asio::ssl::error::stream_truncated;
    if (over && parser.got_some() && !parser.is_done()) {
        parser.put_eof(error);
    } else if (!error) {
        error = parse_buffered(link, parser);
    }
    co_return error;
}

std::string request_head(
    const Endpoint& endpoint, const HttpRequest& request, std::size_t body_size
) {
    std::string head = "POST " + endpoint.path + std::string(request.path) + " HTTP/1.1\r\n";
    head += "Host: " + endpoint.authority() + "\r\n";
    for (const auto& [name, value] : request.headers) {
        head += name + ": " + value + "\r\n";
    }
    head += "Content-Length: " + std::to_string(body_size) + "\r\n\r\n";
    return head;
}

base::Task<error_code> write_request(
    Connection& link, const Endpoint& endpoint, const HttpRequest& request
) {
    const std::string body = request.body();
    const std::string head = request_head(endpoint, request, body.size());
    const std::array<asio::const_buffer, 2> buffers = {asio::buffer(head), asio::buffer(body)};
    error_code error;
    if (link.tls) {
        std::tie(error, std::ignore) = co_await asio::async_write(*link.tls, buffers, as_result());
    } else {
        std::tie(error, std::ignore) = co_await asio::async_write(link.tcp, buffers, as_result());
    }
    throw_if_aborted(error);
    co_return error;
}

}  // namespace

struct HttpClient::Impl {
    Impl(asio::any_io_executor io, HttpSettings chosen)
        : executor(std::move(io)), settings(std::move(chosen)), resolver(executor) {}

    base::Task<base::Result<ConnectionPtr>> connect(Deadline deadline);
    base::Task<base::Result<ConnectionPtr>> connect_to(tcp::endpoint address, Deadline deadline);
    base::Task<base::Result<void>> handshake(Connection& link, Deadline deadline);
    ConnectionPtr take_idle();
    void keep(ConnectionPtr link);

    asio::any_io_executor executor;
    HttpSettings settings;
    base::Resolver resolver;
    std::optional<asio::ssl::context> tls;
    std::vector<ConnectionPtr> idle;  // the newest last
};

struct HttpResponse::Impl {
    HttpClient::Impl& client;
    ConnectionPtr link;  // empty once the answer is over
    std::optional<Parser> parser;
    steady_clock::time_point sent_at;
    error_code failure;  // met while the body was read

    // After the last byte: the connection can serve again, or is closed.
    void release() {
        if (link && parser->is_done() && parser->get().keep_alive() && link->buffer.size() == 0) {
            client.keep(std::move(link));
        }
        link.reset();
    }
};

// The context is made at the first https call: reading some hundred certificates has no place in
// the start of the program.
base::Task<base::Result<void>> HttpClient::Impl::handshake(Connection& link, Deadline deadline) {
    if (!tls) {
        auto made = make_tls_context(settings.ca_file);
        if (!made) {
            co_return std::unexpected(made.error());
        }
        tls.emplace(std::move(*made));
    }
    link.tls.emplace(link.tcp, *tls);
    SSL* session = link.tls->native_handle();
    if (!expect_host(session, settings.endpoint.host)) {
        co_return base::fail(
            ErrorKind::internal,
            "tls_refused",
            "OpenSSL refuses the host name " + settings.endpoint.host
        );
    }
    link.tcp.expires_at(deadline.at);
    const auto [error] =
        co_await link.tls->async_handshake(asio::ssl::stream_base::client, as_result());
    throw_if_aborted(error);
    if (error == beast::error::timeout) {
        co_return std::unexpected(timed_out(settings.endpoint, "the TLS handshake took too long"));
    }
    if (!error) {
        co_return base::Result<void>();
    }
    if (const std::string fault = certificate_fault(session); !fault.empty()) {
        co_return base::fail(
            ErrorKind::unavailable,
            "tls_refused",
            settings.endpoint.text() + ": its certificate is not valid for this host: " + fault +
                "; a private authority belongs into ca_file or SSL_CERT_FILE"
        );
    }
    co_return std::unexpected(unreachable(settings.endpoint, "TLS handshake: " + error.message()));
}

base::Task<base::Result<ConnectionPtr>> HttpClient::Impl::connect_to(
    tcp::endpoint address, Deadline deadline
) {
    auto link = std::make_unique<Connection>(executor);
    error_code error;
    link->tcp.socket().open(address.protocol(), error);
    if (error) {
        co_return std::unexpected(unreachable(settings.endpoint, "socket: " + error.message()));
    }
    ::fcntl(link->tcp.socket().native_handle(), F_SETFD, FD_CLOEXEC);
    link->tcp.expires_at(deadline.at);
    std::tie(error) = co_await link->tcp.async_connect(address, as_result());
    throw_if_aborted(error);
    if (error == beast::error::timeout) {
        co_return std::unexpected(timed_out(settings.endpoint, "no connection in the time allowed")
        );
    }
    if (error) {
        co_return std::unexpected(unreachable(settings.endpoint, "connect: " + error.message()));
    }
    link->tcp.socket().set_option(tcp::no_delay(true), error);
    if (settings.endpoint.tls) {
        if (auto shaken = co_await handshake(*link, deadline); !shaken) {
            co_return std::unexpected(shaken.error());
        }
    }
    co_return link;
}

base::Task<base::Result<ConnectionPtr>> HttpClient::Impl::connect(Deadline deadline) {
    deadline = deadline.earlier(Deadline::after(settings.connect_timeout));
    const auto addresses =
        co_await resolver.resolve(settings.endpoint.host, settings.endpoint.port, deadline);
    if (!addresses) {
        const base::Error& why = addresses.error();
        co_return std::unexpected(
            why.kind == ErrorKind::timeout ? timed_out(settings.endpoint, why.message)
                                           : unreachable(settings.endpoint, why.message)
        );
    }
    base::Result<ConnectionPtr> last =
        std::unexpected(unreachable(settings.endpoint, "no address"));
    for (std::size_t i = 0; i < addresses->size(); ++i) {
        // A dead first address must leave time for the others.
        const auto share = deadline.remaining() / static_cast<int>(addresses->size() - i);
        last = co_await connect_to((*addresses)[i], Deadline::after(share));
        if (last || last.error().code == "tls_refused" || last.error().code == "no_ca_bundle") {
            break;
        }
    }
    co_return last;
}

ConnectionPtr HttpClient::Impl::take_idle() {
    const auto oldest = steady_clock::now() - kIdleTime;
    const auto young = std::ranges::find_if(idle, [&](const ConnectionPtr& link) {
        return link->idle_since >= oldest;
    });
    idle.erase(idle.begin(), young);
    while (!idle.empty()) {
        ConnectionPtr link = std::move(idle.back());
        idle.pop_back();
        if (link->usable()) {
            return link;
        }
    }
    return nullptr;
}

void HttpClient::Impl::keep(ConnectionPtr link) {
    if (idle.size() >= kIdleConnections) {
        idle.erase(idle.begin());
    }
    link->tcp.expires_never();
    link->buffer.shrink_to_fit();
    link->idle_since = steady_clock::now();
    idle.push_back(std::move(link));
}

namespace {

// One request on one connection. `answered` tells whether any byte of an answer came.
base::Task<base::Result<std::unique_ptr<HttpResponse>>> exchange(
    HttpClient::Impl& client,
    ConnectionPtr link,
    const HttpRequest& request,
    Deadline deadline,
    bool& answered
) {
    const Endpoint& endpoint = client.settings.endpoint;
    link->tcp.expires_at(deadline.earlier(Deadline::after(client.settings.first_byte_timeout)).at);
    const error_code written = co_await write_request(*link, endpoint, request);
    if (written == beast::error::timeout) {
        answered = true;
        co_return std::unexpected(
            timed_out(endpoint, "the provider did not take the request in the time allowed")
        );
    }
    // After a failed write an answer may still be there: a provider that refuses early says why.
    auto impl = std::make_unique<HttpResponse::Impl>(
        client, std::move(link), std::nullopt, steady_clock::now(), error_code()
    );
    impl->link->tcp.expires_at(
        deadline.earlier(Deadline::after(client.settings.first_byte_timeout)).at
    );
    do {
        impl->parser.emplace();
        impl->parser->header_limit(kHeadBytes);
        impl->parser->body_limit(kStreamBytes);
        error_code error = parse_buffered(*impl->link, *impl->parser);
        while (!error && !impl->parser->is_header_done()) {
            error = co_await read_once(*impl->link, *impl->parser);
        }
        if (error) {
            answered = answered || impl->parser->got_some() || error == beast::error::timeout;
            co_return std::unexpected(
                error == beast::error::timeout
                    ? timed_out(
                          endpoint,
                          "the provider sent no answer within " +
                              base::format_duration(client.settings.first_byte_timeout)
                      )
                    : read_error(endpoint, error)
            );
        }
        answered = true;
    } while (impl->parser->get().result_int() < 200);
    impl->parser->eager(true);
    co_return std::make_unique<HttpResponse>(std::move(impl));
}

}  // namespace

HttpClient::HttpClient(asio::any_io_executor executor, HttpSettings settings)
    : impl_(std::make_unique<Impl>(std::move(executor), std::move(settings))) {}
HttpClient::~HttpClient() = default;

base::Task<base::Result<std::unique_ptr<HttpResponse>>> HttpClient::post(
    HttpRequest request, Deadline deadline
) {
    if (ConnectionPtr link = impl_->take_idle()) {
        bool answered = false;
        auto response = co_await exchange(*impl_, std::move(link), request, deadline, answered);
        if (response || answered) {
            co_return response;
        }
        impl_->idle.clear();  // the server closes idle connections: the others are no better
    }
    auto link = co_await impl_->connect(deadline);
    if (!link) {
        co_return std::unexpected(link.error());
    }
    bool answered = false;
    co_return co_await exchange(*impl_, std::move(*link), request, deadline, answered);
}

HttpResponse::HttpResponse(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpResponse::~HttpResponse() = default;

int HttpResponse::status() const { return static_cast<int>(impl_->parser->get().result_int()); }

std::optional<std::string_view> HttpResponse::header(std::string_view name) const {
    const auto& fields = impl_->parser->get();
    const auto found = fields.find(beast::string_view(name.data(), name.size()));
    if (found == fields.end()) {
        return std::nullopt;
    }
    return std::string_view(found->value().data(), found->value().size());
}

steady_clock::time_point HttpResponse::sent_at() const { return impl_->sent_at; }

base::Task<base::Result<std::string>> HttpResponse::read(Deadline deadline) {
    Parser& parser = *impl_->parser;
    std::string& piece = parser.get().body();
    error_code& failure = impl_->failure;
    if (impl_->link && !failure) {
        failure = parse_buffered(*impl_->link, parser);
    }
    while (impl_->link && !failure && piece.empty() && !parser.is_done()) {
        impl_->link->tcp.expires_at(deadline.at);
        failure = co_await read_once(*impl_->link, parser);
    }
    if (failure && piece.empty()) {  // what came before a failure is handed over first
        impl_->link.reset();
        co_return std::unexpected(read_error(impl_->client.settings.endpoint, failure));
    }
    if (parser.is_done()) {
        impl_->release();
    }
    co_return std::exchange(piece, {});
}

base::Task<void> HttpResponse::finish() {
    const Deadline deadline = Deadline::after(kDrainTime);
    while (impl_->link) {
        const auto piece = co_await read(deadline);
        if (!piece || piece->empty()) {
            break;
        }
    }
    impl_->link.reset();
}

}  // namespace ars::models
