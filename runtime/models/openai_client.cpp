#include "runtime/models/openai_client.hpp"

#include "base/clock.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "runtime/models/chat_reply.hpp"
#include "runtime/models/endpoint.hpp"
#include "runtime/models/http_client.hpp"
#include "runtime/models/sse_parser.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace ars::models {

using base::Deadline;
using base::ErrorKind;
using std::chrono::milliseconds;

// Passes the stream on and remembers whether anything of it must be taken back.
class PieceCounter final : public DeltaSink {
  public:
    explicit PieceCounter(DeltaSink& next) : next_(next) {}
    void text(std::string_view piece) override {
        published_ = true;
        next_.text(piece);
    }
    void reasoning(std::string_view piece) override {
        published_ = true;
        next_.reasoning(piece);
    }
    void restart(std::string_view reason) override {
        if (std::exchange(published_, false)) {
            next_.restart(reason);
        }
    }

  private:
    DeltaSink& next_;
    bool published_ = false;
};

namespace {

constexpr std::size_t kRefusalBytes =
    64 * base::limits::kKiB;  // read of an error body; fewer are shown
constexpr auto kAfterFinish =
    std::chrono::seconds(5);  // for the usage chunk and [DONE], once the reply is whole
constexpr auto kLongestBackoff = milliseconds(8000);

// A failure of the connection, in the words of model_client.hpp.
CallFailure failure_of_transport(const base::Error& error) {
    CallFailure out;
    out.error = error;
    out.error.code = error.kind == ErrorKind::timeout ? "model_timeout"
                     : error.code == "http_malformed" || error.code == "http_too_large"
                         ? "model_protocol"
                         : "model_unavailable";
    out.retryable = error.code != "tls_refused" && error.code != "no_ca_bundle" &&
                    error.code != "http_too_large";
    return out;
}

CallFailure silence(std::string_view what, milliseconds limit) {
    CallFailure out;
    out.error = {
        ErrorKind::timeout,
        "model_timeout",
        "the model sent no " + std::string(what) + " for " + base::format_duration(limit)
    };
    out.retryable = true;
    return out;
}

CallFailure over_limit(std::string_view where) {
    return {
        {ErrorKind::timeout,
         "model_timeout",
         std::string(where) + ": the model call ran over its total time"},
        false,
        std::nullopt
    };
}

bool usable_in_header(std::string_view key) {
    return std::ranges::all_of(key, [](char c) { return c > 0x20 && c < 0x7F; });
}

std::optional<milliseconds> retry_after_of(const HttpResponse& response) {
    if (const auto ms = response.header("retry-after-ms")) {
        double value = 0;
        const auto [stop, error] = std::from_chars(ms->data(), ms->data() + ms->size(), value);
        if (error == std::errc{} && value >= 0 && value < 1e9) {
            return milliseconds(static_cast<std::int64_t>(value));
        }
    }
    const auto text = response.header("retry-after");
    return text ? parse_retry_after(*text, base::now_ms()) : std::nullopt;
}

// "Invalid schema ... tools[3].function.parameters" means little without the name of that tool.
std::string tool_named_in(std::string_view message, const ModelRequest& request) {
    const std::size_t at = message.find("tools[");
    if (at == std::string_view::npos) {
        return {};
    }
    std::size_t index = request.tools.size();
    std::from_chars(message.data() + at + 6, message.data() + message.size(), index);
    return index < request.tools.size() ? " (that tool is \"" + request.tools[index]->name + "\")"
                                        : "";
}

}  // namespace

OpenAiClient::OpenAiClient(
    base::asio::any_io_executor executor, Settings settings, const base::Log& log
)
    : settings_(std::move(settings)), log_(log), jitter_(std::random_device{}()) {
    auto endpoint = parse_endpoint(settings_.base_url);
    settings_.api_key = base::trim(settings_.api_key);  // key files end with a newline
    settings_.secrets.add("API key", settings_.api_key);
    if (!endpoint) {
        refusal_ = endpoint.error().message;
    } else if (!usable_in_header(settings_.api_key)) {
        refusal_ = "the API key has characters that can't stand in an HTTP header";
    } else {
        where_ = endpoint->text();
        http_ = std::make_unique<HttpClient>(
            std::move(executor),
            HttpSettings{
                std::move(*endpoint),
                settings_.ca_file,
                settings_.connect_timeout,
                settings_.first_byte_timeout
            }
        );
    }
}

OpenAiClient::~OpenAiClient() = default;

base::Task<base::Result<ModelReply>> OpenAiClient::complete(
    const ModelRequest& request, DeltaSink& sink
) {
    if (!http_) {
        co_return base::fail(ErrorKind::invalid, "model_rejected", refusal_);
    }
    auto first_body = chat_request_body(request, settings_.chat);
    if (!first_body) {
        co_return std::unexpected(first_body.error());
    }
    // Later ones, for a connection that failed and for a retry, are made of the request again.
    const auto body = [&] {
        return first_body->empty() ? chat_request_body(request, settings_.chat).value()
                                   : std::exchange(*first_body, {});
    };
    const Deadline limit = request.deadline.earlier(Deadline::after(settings_.total_timeout));
    PieceCounter pieces(sink);
    for (std::uint32_t retry = 0;; ++retry) {
        Attempt reply = co_await attempt(request, body, pieces, limit);
        if (reply) {
            co_return std::move(*reply);
        }
        const milliseconds pause = pause_before(retry, reply.error());
        base::Error error = presentable(std::move(reply.error().error), request);
        if (!reply.error().retryable || retry >= settings_.retries || pause >= limit.remaining()) {
            if (retry > 0) {
                error.message += " (after " + std::to_string(retry + 1) + " attempts)";
            }
            co_return std::unexpected(std::move(error));
        }
        log_.warning(
            "model_retry",
            {{"provider", where_},
             {"model", request.model},
             {"attempt", retry + 1},
             {"pause_ms", pause.count()},
             {"code", error.code},
             {"message", error.message}}
        );
        pieces.restart(error.message);
        co_await base::sleep_until(Deadline::after(pause));
    }
}

base::Task<OpenAiClient::Attempt> OpenAiClient::attempt(
    const ModelRequest& request, std::function<std::string()> body, DeltaSink& sink, Deadline limit
) {
    HttpRequest post{"/chat/completions", {}, std::move(body)};
    post.headers.emplace_back("Content-Type", "application/json");
    post.headers.emplace_back("Accept", "text/event-stream");
    post.headers.emplace_back("User-Agent", "ars");
    if (!settings_.api_key.empty()) {
        post.headers.emplace_back("Authorization", "Bearer " + settings_.api_key);
    }
    const auto response = co_await http_->post(std::move(post), limit);
    if (!response) {
        co_return std::unexpected(
            limit.passed() ? over_limit(where_) : failure_of_transport(response.error())
        );
    }
    HttpResponse& answer = **response;
    if (answer.status() > 299) {
        co_return std::unexpected(co_await read_refusal(answer, limit));
    }
    // A provider that does not stream answers with one JSON document.
    const std::string_view type = answer.header("content-type").value_or("");
    if (type.find("json") != std::string_view::npos &&
        type.find("event-stream") == std::string_view::npos) {
        co_return co_await read_whole(answer, request, sink, limit);
    }
    co_return co_await read_stream(answer, request, sink, limit);
}

base::Task<CallFailure> OpenAiClient::read_refusal(HttpResponse& response, Deadline limit) {
    const Deadline deadline = limit.earlier(Deadline::after(settings_.idle_timeout));
    std::string body;
    while (body.size() < kRefusalBytes) {
        const auto piece = co_await response.read(deadline);
        if (!piece || piece->empty()) {
            break;  // the status alone tells enough
        }
        body += *piece;
    }
    if (response.status() >= 300 && response.status() < 400) {
        body = "redirects are not followed; Location: " +
               std::string(response.header("location").value_or("(none)"));
    }
    // Before it is cut: a part of a key would not be found.
    body = settings_.secrets.redact(std::move(body));
    co_return failure_of_answer(response.status(), body, retry_after_of(response), where_);
}

base::Task<OpenAiClient::Attempt> OpenAiClient::read_whole(
    HttpResponse& response, const ModelRequest& request, DeltaSink& sink, Deadline limit
) {
    std::string body;
    for (;;) {
        auto piece = co_await response.read(limit.earlier(Deadline::after(settings_.idle_timeout)));
        if (!piece) {
            co_return std::unexpected(
                limit.passed() ? over_limit(where_) : failure_of_transport(piece.error())
            );
        }
        if (piece->empty()) {
            break;
        }
        body += *piece;
        if (body.size() > base::limits::kModelReplyBytes) {
            co_return std::unexpected(
                failure_of_protocol("the answer is larger than any reply may be")
            );
        }
    }
    ReplyBuilder builder(request.tools, settings_.chat.max_output_tokens, sink);
    if (auto fed = builder.feed(body); !fed) {
        co_return std::unexpected(std::move(fed.error()));
    }
    co_return builder.take();
}

base::Task<OpenAiClient::Attempt> OpenAiClient::read_stream(
    HttpResponse& response, const ModelRequest& request, DeltaSink& sink, Deadline limit
) {
    SseParser parser(base::limits::kModelReplyBytes);
    ReplyBuilder builder(request.tools, settings_.chat.max_output_tokens, sink);
    // Comments keep a stream alive, but not one that never says anything: the first event has its
    // own limit.
    const Deadline first{response.sent_at() + settings_.first_byte_timeout};
    bool any_event = false;
    std::optional<CallFailure> broken;
    while (!broken) {
        const Deadline next = builder.finished() ? Deadline::after(kAfterFinish)
                              : any_event        ? Deadline::after(settings_.idle_timeout)
                                                 : first;
        const auto piece = co_await response.read(next.earlier(limit));
        if (!piece) {
            broken = limit.passed() ? over_limit(where_)
                     : piece.error().kind != ErrorKind::timeout
                         ? failure_of_transport(piece.error())
                     : any_event ? silence("byte", settings_.idle_timeout)
                                 : silence("event", settings_.first_byte_timeout);
        }
        if (!piece || piece->empty()) {
            break;
        }
        parser.feed(*piece);
        while (const auto event = parser.next()) {
            any_event = true;
            if (auto fed = builder.feed(event->data); !fed) {
                co_return std::unexpected(std::move(fed.error()));
            }
            if (builder.done()) {
                co_await response.finish();
                co_return builder.take();
            }
        }
        if (parser.overflowed()) {
            co_return std::unexpected(
                failure_of_protocol("the provider sent an event without an end")
            );
        }
    }
    parser.finish();
    while (const auto event = parser.next()) {
        if (!builder.feed(event->data)) {
            break;  // cut in the middle: what decides is whether the reply was whole before
        }
    }
    if (broken && !builder.finished()) {
        co_return std::unexpected(std::move(*broken));
    }
    co_return builder.take();
}

// What the provider asks for, else exponential back-off with a jitter of half its length.
milliseconds OpenAiClient::pause_before(std::uint32_t retry, const CallFailure& failure) {
    if (failure.retry_after) {
        return *failure.retry_after;
    }
    const auto whole =
        std::min(kLongestBackoff, settings_.first_backoff * (1U << std::min(retry, 10U)));
    const std::int64_t half = whole.count() / 2;
    return milliseconds(half + std::uniform_int_distribution<std::int64_t>(0, half)(jitter_));
}

// Providers like to quote the key they refuse.
base::Error OpenAiClient::presentable(base::Error error, const ModelRequest& request) const {
    if (error.code == "model_rejected") {
        error.message += tool_named_in(error.message, request);
    }
    error.message = settings_.secrets.redact(std::move(error.message));
    return error;
}

}  // namespace ars::models
