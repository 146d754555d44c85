// What the tests of the model client share: a sink that remembers, a request, and a call run to its
// end on an I/O context of its own.
#pragma once

#include "base/log.hpp"
#include "runtime/models/openai_client.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ars::models {

// Gathers text and reasoning; restart() voids them and is counted.
struct RecordingSink final : DeltaSink {
    void text(std::string_view piece) override {
        pieces.emplace_back(piece);
        content += piece;
        if (on_text) {
            on_text();
        }
    }
    void reasoning(std::string_view piece) override {
        pieces.emplace_back(piece);
        thoughts += piece;
    }
    void restart(std::string_view reason) override {
        restarts.emplace_back(reason);
        content.clear();
        thoughts.clear();
    }

    std::string content;
    std::string thoughts;
    std::vector<std::string> pieces;
    std::vector<std::string> restarts;
    std::function<void()> on_text;
};

inline Message message_of(Role role, std::string content) {
    Message message;
    message.role = role;
    message.content = std::move(content);
    return message;
}
inline Message calling(std::vector<ToolCall> calls) {
    Message message;
    message.role = Role::assistant;
    message.tool_calls = std::move(calls);
    return message;
}
inline Message result_of(std::string id, std::string content) {
    Message message = message_of(Role::tool, std::move(content));
    message.tool_call_id = std::move(id);
    return message;
}

inline ModelRequest request_saying(std::string text) {
    ModelRequest request;
    request.model = "gpt-x";
    request.messages.push_back(message_of(Role::user, std::move(text)));
    return request;
}

// Settings for a server of a test: waits short enough for a test, yet far above what a busy machine
// needs.
inline OpenAiClient::Settings quick_settings(const std::string& base_url) {
    OpenAiClient::Settings settings;
    settings.base_url = base_url;
    settings.connect_timeout = std::chrono::seconds(20);
    settings.first_byte_timeout = std::chrono::seconds(20);
    settings.idle_timeout = std::chrono::seconds(20);
    settings.total_timeout = std::chrono::seconds(60);
    settings.first_backoff = std::chrono::milliseconds(1);
    return settings;
}

class Caller {
  public:
    explicit Caller(OpenAiClient::Settings settings, int log_fd = -1)
        : log_(log_fd, log_fd < 0 ? base::LogLevel::off : base::LogLevel::debug),
          client_(io_.get_executor(), std::move(settings), log_) {}

    // Runs one call to its end. Rethrows what it threw.
    base::Result<ModelReply> call(const ModelRequest& request) {
        std::optional<base::Result<ModelReply>> outcome;
        std::exception_ptr thrown;
        boost::asio::co_spawn(
            io_,
            client_.complete(request, sink),
            boost::asio::bind_cancellation_slot(
                cancel_.slot(),
                [&](std::exception_ptr error, base::Result<ModelReply> result) {
                    thrown = error;
                    outcome = std::move(result);
                }
            )
        );
        io_.restart();
        io_.run();
        if (thrown) {
            std::rethrow_exception(thrown);
        }
        return std::move(*outcome);
    }

    // From a sink's on_text: asks the running call to stop once the stack is unwound.
    void cancel() {
        boost::asio::post(io_, [this] { cancel_.emit(boost::asio::cancellation_type::terminal); });
    }

    RecordingSink sink;

  private:
    boost::asio::io_context io_{1};
    boost::asio::cancellation_signal cancel_;
    base::Log log_;
    OpenAiClient client_;
};

}  // namespace ars::models
