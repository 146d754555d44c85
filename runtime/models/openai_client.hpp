// A provider that speaks the OpenAI chat completions format over HTTP: most of them do.
#pragma once

#include "base/limits.hpp"
#include "base/log.hpp"
#include "runtime/models/call_failure.hpp"
#include "runtime/models/chat_request.hpp"
#include "runtime/models/model_client.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <random>
#include <string>

namespace ars::models {

class HttpClient;
class HttpResponse;
class PieceCounter;

class OpenAiClient final : public ModelClient {
  public:
    struct Settings {
        std::string base_url;  // "http://host:port/v1"; see parse_endpoint for what is accepted
        std::string api_key;   // may be empty: no Authorization header then
        // Values that stand in no error text, whatever the provider quotes. The key is one of them.
        base::Redactor secrets;
        std::string ca_file;  // empty: see find_ca_bundle
        std::chrono::milliseconds connect_timeout = base::limits::kModelConnectTimeout;
        std::chrono::milliseconds first_byte_timeout = base::limits::kModelFirstByteTimeout;
        std::chrono::milliseconds idle_timeout = base::limits::kModelIdleTimeout;
        std::chrono::milliseconds total_timeout =
            base::limits::kModelTotalTimeout;  // with all retries
        std::uint32_t retries = base::limits::kModelRetries;
        std::chrono::milliseconds first_backoff{500};  // doubled by each retry, with jitter
        ChatOptions chat;
    };

    // `log` outlives the client. A base_url or key that can't be used makes every complete() fail
    // with "model_rejected"; configuration checks call parse_endpoint before.
    OpenAiClient(base::asio::any_io_executor executor, Settings settings, const base::Log& log);
    ~OpenAiClient() override;

    base::Task<base::Result<ModelReply>> complete(const ModelRequest& request, DeltaSink& sink)
        override;

  private:
    using Attempt = std::expected<ModelReply, CallFailure>;

    base::Task<Attempt> attempt(
        const ModelRequest& request,
        std::function<std::string()> body,
        DeltaSink& sink,
        base::Deadline limit
    );
    base::Task<CallFailure> read_refusal(HttpResponse& response, base::Deadline limit);
    base::Task<Attempt> read_stream(
        HttpResponse& response, const ModelRequest& request, DeltaSink& sink, base::Deadline limit
    );
    base::Task<Attempt> read_whole(
        HttpResponse& response, const ModelRequest& request, DeltaSink& sink, base::Deadline limit
    );
    [[nodiscard]] std::chrono::milliseconds pause_before(
        std::uint32_t retry, const CallFailure& failure
    );
    [[nodiscard]] base::Error presentable(base::Error error, const ModelRequest& request) const;

    Settings settings_;
    const base::Log& log_;
    std::string where_;    // the URL, for people
    std::string refusal_;  // why the settings can't be used; empty when they can
    std::unique_ptr<HttpClient> http_;
    std::minstd_rand jitter_;
};

}  // namespace ars::models
