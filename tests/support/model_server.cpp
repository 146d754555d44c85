#include "tests/support/model_server.hpp"

#include "base/fd.hpp"
#include "tests/support/server_wire.hpp"
#include "tests/support/strict_request.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ars::tests {

namespace {

namespace json = boost::json;
using std::chrono::milliseconds;

std::string lower(std::string text) {
    for (char& c : text) {
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return text;
}

struct Incoming {
    std::string method;
    RecordedRequest request;
};

// Reads one request; empty when the client is gone or does not speak HTTP.
std::optional<Incoming> read_request(ServerWire& wire, std::string& buffer) {
    std::size_t head_end = std::string::npos;
    while ((head_end = buffer.find("\r\n\r\n")) == std::string::npos) {
        if (!wire.read_into(buffer)) {
            return std::nullopt;
        }
    }
    Incoming out;
    const std::string head = buffer.substr(0, head_end + 2);
    buffer.erase(0, head_end + 4);
    const std::string first = head.substr(0, head.find("\r\n"));
    out.method = first.substr(0, first.find(' '));
    const std::size_t target = out.method.size() + 1;
    out.request.target = first.substr(target, first.find(' ', target) - target);
    std::size_t length = 0;
    for (std::size_t at = first.size() + 2; at < head.size();) {
        const std::string line = head.substr(at, head.find("\r\n", at) - at);
        at += line.size() + 2;
        const std::size_t colon = line.find(": ");
        if (colon == std::string::npos) {
            return std::nullopt;
        }
        out.request.headers.emplace_back(lower(line.substr(0, colon)), line.substr(colon + 2));
        if (out.request.headers.back().first == "content-length") {
            length = std::stoul(out.request.headers.back().second);
        }
    }
    while (buffer.size() < length) {
        if (!wire.read_into(buffer)) {
            return std::nullopt;
        }
    }
    out.request.body = buffer.substr(0, length);
    buffer.erase(0, length);
    json::error_code error;
    out.request.json = json::parse(out.request.body, error);
    return out;
}

std::string encoded_chunk(const std::string& bytes) {
    if (bytes.empty()) {
        return {};
    }
    char size[32];
    std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
    return size + bytes + "\r\n";
}

enum class Ending { keep, close, hung_up };

// Sends an answer step by step.
Ending play(ServerWire& wire, const ScriptedReply& reply) {
    if (!wire.pause(reply.delay_before_head)) {
        return Ending::hung_up;
    }
    std::string out = "HTTP/1.1 " + std::to_string(reply.status) + " Scripted\r\n";
    for (const auto& [name, value] : reply.headers) {
        out += name + ": " + value + "\r\n";
    }
    out += std::string("Transfer-Encoding: chunked\r\n") +
           (reply.close_after ? "Connection: close\r\n" : "") + "\r\n";
    for (const Step& step : reply.body) {
        if (const Send* send = std::get_if<Send>(&step)) {
            out += encoded_chunk(send->bytes);
            continue;
        }
        if (!wire.write(std::exchange(out, {}), reply.split_bytes)) {
            return Ending::hung_up;
        }
        if (const Pause* pause = std::get_if<Pause>(&step)) {
            if (!wire.pause(pause->time)) {
                return Ending::hung_up;
            }
        } else {
            wire.close(std::get<Cut>(step).reset);
            return Ending::close;
        }
    }
    if (!wire.write(out + "0\r\n\r\n", reply.split_bytes)) {
        return Ending::hung_up;
    }
    return reply.close_after ? Ending::close : Ending::keep;
}

ScriptedReply refusal(int status, const std::string& type, const std::string& message) {
    return error_reply(
        status,
        json::serialize(json::object{
            {"error",
             json::object{
                 {"message", message}, {"type", type}, {"param", nullptr}, {"code", nullptr}
             }}
        })
    );
}

}  // namespace

std::string RecordedRequest::header(std::string_view name) const {
    for (const auto& [key, value] : headers) {
        if (key == name) {
            return value;
        }
    }
    return {};
}

std::string RecordedRequest::last(std::string_view role) const {
    const json::value* messages =
        json.is_object() ? json.get_object().if_contains("messages") : nullptr;
    if (messages == nullptr || !messages->is_array()) {
        return {};
    }
    std::string found;
    for (const json::value& message : messages->get_array()) {
        const json::object* object = message.if_object();
        const json::value* content = object != nullptr ? object->if_contains("content") : nullptr;
        const json::value* spoken_by = object != nullptr ? object->if_contains("role") : nullptr;
        if (content != nullptr && content->is_string() && spoken_by != nullptr &&
            *spoken_by == json::string_view(role.data(), role.size())) {
            found = content->get_string();
        }
    }
    return found;
}

struct ModelServer::Impl {
    Impl(Options chosen, Handler chosen_handler)
        : options(std::move(chosen)), handler(std::move(chosen_handler)) {
        if (!options.certificate_pem.empty()) {
            tls.emplace(options.certificate_pem, options.key_pem);
        }
        listener = base::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const int on = 1;
        ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(options.port);
        socklen_t size = sizeof address;
        auto* raw = reinterpret_cast<sockaddr*>(&address);
        if (::bind(listener.get(), raw, size) != 0 || ::listen(listener.get(), 512) != 0 ||
            ::getsockname(listener.get(), raw, &size) != 0) {
            throw std::runtime_error(
                "the model server can't listen on port " + std::to_string(options.port)
            );
        }
        port = ntohs(address.sin_port);
        acceptor = std::thread([this] { accept_all(); });
    }

    ~Impl() {
        {
            const std::lock_guard lock(mutex);
            stopping = true;
        }
        ::shutdown(listener.get(), SHUT_RDWR);
        acceptor.join();
        drop();
        for (std::thread& thread : threads) {
            thread.join();
        }
    }

    void accept_all() {
        // SSL_write raises SIGPIPE when the client is gone; the threads of the connections inherit
        // this mask.
        sigset_t pipe;
        ::sigemptyset(&pipe);
        ::sigaddset(&pipe, SIGPIPE);
        ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
        for (std::uint64_t number = 1;; ++number) {
            base::Fd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
            const std::lock_guard lock(mutex);
            if (stopping || !fd) {
                return;
            }
            open.insert(fd.get());
            threads.emplace_back([this, number, socket = std::move(fd)]() mutable {
                serve(std::move(socket), number);
            });
        }
    }

    void serve(base::Fd socket, std::uint64_t number) {
        const int raw = socket.get();
        ServerWire wire(std::move(socket), tls ? &*tls : nullptr);
        std::string buffer;
        while (auto incoming = wire.alive() ? read_request(wire, buffer) : std::nullopt) {
            incoming->request.connection = number;
            const Ending ending = play(wire, answer(std::move(*incoming)));
            if (ending == Ending::hung_up) {
                const std::lock_guard lock(mutex);
                ++hang_ups;
                changed.notify_all();
            }
            if (ending != Ending::keep) {
                break;
            }
        }
        // Out of the set before the number of the descriptor can be given to another one.
        const std::lock_guard lock(mutex);
        open.erase(raw);
        wire.close(false);
    }

    ScriptedReply answer(Incoming incoming) {
        RecordedRequest& request = incoming.request;
        const std::lock_guard lock(mutex);
        if (incoming.method == "GET" && request.target == "/requests") {
            return error_reply(200, json::serialize(report()));
        }
        std::optional<ScriptedReply> refused = refuse(incoming);
        const std::size_t n = valid;
        valid += refused ? 0 : 1;
        requests.push_back(request);
        changed.notify_all();
        if (refused) {
            return *refused;
        }
        if (handler) {
            return handler(request, n);
        }
        if (queue.empty()) {
            return refusal(400, "invalid_request_error", "nothing is scripted for this request");
        }
        ScriptedReply reply = std::move(queue.front());
        queue.pop_front();
        return reply;
    }

    std::optional<ScriptedReply> refuse(Incoming& incoming) const {
        RecordedRequest& request = incoming.request;
        if (incoming.method != "POST" ||
            (options.strict && !request.target.ends_with("/chat/completions"))) {
            request.fault = incoming.method + " " + request.target + " does not exist here";
            return refusal(404, "not_found_error", request.fault);
        }
        if (!options.api_key.empty() &&
            request.header("authorization") != "Bearer " + options.api_key) {
            request.fault = "wrong key: " + request.header("authorization");
            return refusal(401, "authentication_error", request.fault);
        }
        if (options.strict && !request.header("content-type").starts_with("application/json")) {
            request.fault = "the content type is not application/json";
        } else if (options.strict) {
            request.fault = find_request_fault(request.body).value_or("");
        }
        if (!request.fault.empty()) {
            return refusal(400, "invalid_request_error", request.fault);
        }
        return std::nullopt;
    }

    json::object report() const {
        json::array list;
        json::array faults;
        for (const RecordedRequest& request : requests) {
            list.push_back(request.json);
            if (!request.fault.empty()) {
                faults.emplace_back(request.fault);
            }
        }
        return {
            {"count", requests.size()},
            {"faults", faults},
            {"hang_ups", hang_ups},
            {"requests", list}
        };
    }

    void drop() {
        const std::lock_guard lock(mutex);
        for (const int fd : open) {
            ::shutdown(fd, SHUT_RDWR);
        }
    }

    Options options;
    Handler handler;
    std::optional<ServerTls> tls;
    base::Fd listener;
    std::uint16_t port = 0;
    mutable std::mutex mutex;
    mutable std::condition_variable changed;
    std::deque<ScriptedReply> queue;
    std::vector<RecordedRequest> requests;
    std::size_t valid = 0;
    std::size_t hang_ups = 0;
    std::set<int> open;
    bool stopping = false;
    std::vector<std::thread> threads;
    std::thread acceptor;
};

ModelServer::ModelServer(Handler handler) : ModelServer(Options(), std::move(handler)) {}
ModelServer::ModelServer(Options options, Handler handler)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(handler))) {}
ModelServer::~ModelServer() = default;

void ModelServer::push(ScriptedReply reply) {
    const std::lock_guard lock(impl_->mutex);
    impl_->queue.push_back(std::move(reply));
}

std::uint16_t ModelServer::port() const { return impl_->port; }

std::string ModelServer::base_url() const {
    return (impl_->tls ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(impl_->port) +
           "/v1";
}

std::vector<RecordedRequest> ModelServer::requests() const {
    const std::lock_guard lock(impl_->mutex);
    return impl_->requests;
}

bool ModelServer::wait_for_hang_up(std::size_t n, milliseconds limit) const {
    std::unique_lock lock(impl_->mutex);
    return impl_->changed.wait_for(lock, limit, [&] { return impl_->hang_ups >= n; });
}

bool ModelServer::wait_for_requests(std::size_t n, milliseconds limit) const {
    std::unique_lock lock(impl_->mutex);
    return impl_->changed.wait_for(lock, limit, [&] { return impl_->requests.size() >= n; });
}

void ModelServer::drop_connections() { impl_->drop(); }

}  // namespace ars::tests
