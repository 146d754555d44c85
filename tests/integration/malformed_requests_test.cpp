// Ten thousand requests that are wrong in one way each, over several connections at once, against
// the real server: nothing but 4xx and closed connections, nothing left behind, and health all the
// time. ARS_SEED repeats a run, ARS_REQUESTS makes it another length.
#include "tests/support/malformed_requests.hpp"

#include "base/fd.hpp"
#include "tests/support/server.hpp"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

namespace ars::tests {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr unsigned kRequests = 10'000;
constexpr unsigned kConnections = 8;
constexpr unsigned kSlowOnes = 8;

// What the server may have grown by in the end, and at most in between, where eight bodies of up to
// 4 MiB are read at once.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ARS_KEEPS_FREED_MEMORY
#endif
#endif
#ifdef ARS_KEEPS_FREED_MEMORY
constexpr long kGrowthKib = 1024 * 1024;
constexpr long kPeakKib = 1024 * 1024;
#else
constexpr long kGrowthKib = 32 * 1024;
constexpr long kPeakKib = 192 * 1024;
#endif

unsigned number_from(const char* name, unsigned otherwise) {
    const char* const text = std::getenv(name);
    return text == nullptr ? otherwise : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

long memory_kib(const Server& server, const std::string& field) {
    std::ifstream status("/proc/" + std::to_string(server.pid()) + "/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with(field + ":")) {
            return std::stol(line.substr(field.size() + 1));
        }
    }
    return 0;
}

std::ptrdiff_t descriptors(const Server& server) {
    const std::filesystem::directory_iterator all("/proc/" + std::to_string(server.pid()) + "/fd");
    return std::distance(begin(all), end(all));
}

std::string shown(const std::string& bytes) {
    constexpr std::size_t kShown = 300;
    std::string out;
    for (const char c : bytes.substr(0, kShown)) {
        const auto byte = static_cast<unsigned char>(c);
        char text[8];
        std::snprintf(text, sizeof text, byte < 0x20 || byte > 0x7e ? "\\x%02x" : "%c", byte);
        out += text;
    }
    return out + (bytes.size() > kShown ? "... of " + std::to_string(bytes.size()) : "");
}

// One connection after the other: a new one whenever the server has ended the last.
class Client {
  public:
    explicit Client(int port) : port_(port) {}

    struct Answer {
        int status = 0;  // 0: the connection ended
        std::string body;
    };

    void send(std::string_view bytes) {
        if (!socket_) {
            connect();
        }
        while (!bytes.empty()) {
            const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent <= 0) {
                return;  // refused on the way: the answer says why
            }
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        }
    }
    void say_no_more() { ::shutdown(socket_.get(), SHUT_WR); }

    Answer read_answer(bool of_head) {
        std::size_t end = 0;
        while ((end = in_.find("\r\n\r\n")) == std::string::npos) {
            if (!receive()) {
                close();
                return {};
            }
        }
        const std::string head = in_.substr(0, end + 2);
        in_.erase(0, end + 4);
        Answer answer;
        answer.status = std::atoi(head.c_str() + 9);
        const std::size_t length = head.find("Content-Length: ");
        const std::size_t size =
            of_head || length == std::string::npos ? 0 : std::stoul(head.substr(length + 16));
        while (in_.size() < size && receive()) {
        }
        answer.body = in_.substr(0, size);
        in_.erase(0, size);
        if (head.find("Connection: close\r\n") != std::string::npos) {
            close();
        }
        return answer;
    }
    void close() {
        socket_.reset();
        in_.clear();
    }
    [[nodiscard]] bool is_open() const { return static_cast<bool>(socket_); }

  private:
    void connect() {
        socket_ = base::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const timeval patience{60, 0};
        ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(static_cast<std::uint16_t>(port_));
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
            throw std::runtime_error("the server takes no connection");
        }
    }
    bool receive() {
        char buffer[16384];
        const ssize_t size = ::recv(socket_.get(), buffer, sizeof buffer, 0);
        if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            throw std::runtime_error("neither an answer nor the end of the connection");
        }
        if (size <= 0) {
            return false;
        }
        in_.append(buffer, static_cast<std::size_t>(size));
        return true;
    }

    int port_;
    base::Fd socket_;
    std::string in_;
};

// What is wrong with the answer to a malformed request; "" when nothing is.
std::string wrong_with(const Malformed& request, const Client::Answer& answer) {
    if (answer.status == 0) {
        return request.status == 0 ? "" : "no answer";
    }
    if (answer.status < 400 || answer.status > 499) {
        return "not a 4xx";
    }
    // On a busy machine 5 MiB may take longer than the server waits.
    const bool late = request.kind == "huge_body" && answer.status == 408;
    // What the path names may be missed before the body is read.
    const bool missing = request.bytes.find("/none") != std::string::npos && answer.status == 404;
    if (request.status != 0 && answer.status != request.status && !late && !missing) {
        return "not " + std::to_string(request.status);
    }
    boost::system::error_code ec;
    const json::value body = json::parse(answer.body, ec);
    const json::value* detail =
        !ec && body.is_object() ? body.get_object().if_contains("detail") : nullptr;
    if (detail == nullptr || (!detail->is_string() && !detail->is_object())) {
        return "no {\"detail\": ...}";
    }
    if (request.kind == "bad_json" && answer.status == 400) {
        const json::object* object = detail->if_object();
        if (object == nullptr || !object->contains("line") || !object->contains("column")) {
            return "no line and column";
        }
    }
    return "";
}

class Findings {
  public:
    void add(const std::string& finding) {
        const std::lock_guard lock(mutex_);
        if (all_.size() < 10) {
            all_.push_back(finding);
        }
    }
    [[nodiscard]] std::string text() const {
        std::string out;
        for (const std::string& one : all_) {
            out += one + "\n";
        }
        return out;
    }

  private:
    std::mutex mutex_;
    std::vector<std::string> all_;
};

void send_malformed(int port, MalformedRequests requests, unsigned count, Findings& findings) {
    Client client(port);
    Malformed request;
    for (unsigned i = 0; i < count; ++i) {
        request = requests.next();
        std::string wrong;
        Client::Answer answer;
        try {
            client.send(request.bytes);
            if (request.ends) {
                client.say_no_more();
            }
            if (request.after_good && client.read_answer(false).status != 200) {
                wrong = "the good one before it was not answered";
            }
            answer = client.read_answer(request.bytes.starts_with("HEAD "));
            wrong = wrong.empty() ? wrong_with(request, answer) : wrong;
            if (request.ends && client.is_open()) {
                wrong = client.read_answer(false).status == 0 ? wrong : "a second answer";
            }
        } catch (const std::exception& error) {
            wrong = error.what();
            client.close();
        }
        if (!wrong.empty()) {
            findings.add(
                request.kind + ": " + wrong + ": " + shown(request.bytes) + "\n  answered " +
                std::to_string(answer.status) + " " + shown(answer.body)
            );
        }
    }
}

// Bodies and heads that never come to their end: cut off when server.read_timeout has passed.
void send_slowly(int port, Findings& findings) {
    std::vector<std::unique_ptr<Client>> clients;
    for (unsigned i = 0; i < kSlowOnes; ++i) {
        clients.push_back(std::make_unique<Client>(port));
        clients.back()->send(
            i % 2 == 0
                ? "POST /api/agent/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n"
                  "Content-Type: application/json\r\n\r\n{"
                : "GET /api/system/health HTTP/1.1\r\nHo"
        );
    }
    for (auto& client : clients) {
        try {
            const int status = client->read_answer(false).status;
            if (status != 408) {
                findings.add("a slow request was answered " + std::to_string(status));
            }
        } catch (const std::exception& error) {
            findings.add(std::string("a slow request: ") + error.what());
        }
    }
}

unsigned watch_health(int port, const std::atomic<bool>& over, Findings& findings) {
    unsigned answers = 0;
    while (!over) {
        try {
            const int status = http(port, "GET", "/api/system/health").status;
            if (status != 200) {
                findings.add("health answered " + std::to_string(status));
            }
            ++answers;
        } catch (const std::exception& error) {
            findings.add(std::string("health: ") + error.what());
        }
        std::this_thread::sleep_for(5ms);
    }
    return answers;
}

TEST(MalformedRequests, GetOnly4xxAndLeaveNothingBehind) {
    const unsigned seed = number_from("ARS_SEED", std::random_device{}());
    const unsigned count = number_from("ARS_REQUESTS", kRequests);
    std::printf("ARS_SEED=%u\n", seed);
    SCOPED_TRACE("ARS_SEED=" + std::to_string(seed));
    Server server;
    server.write("scripts/hello.yaml", "agent: main\nturns:\n  - text: hello\n");
    server.add_server_settings("read_timeout: 5s");
    server.start();
    while (http(server.port(), "GET", "/api/system/ready").status != 200) {
        std::this_thread::sleep_for(5ms);
    }
    const json::value openapi = http(server.port(), "GET", "/openapi.json").json();
    ASSERT_TRUE(MalformedRequests(openapi, seed).knows_the_api());
    Findings findings;

    // What a server keeps for good once it has worked is not growth.
    send_malformed(server.port(), MalformedRequests(openapi, seed + 1), 300, findings);
    const std::ptrdiff_t open_before = descriptors(server);
    const long memory_before = memory_kib(server, "VmRSS");

    std::atomic<bool> over = false;
    unsigned health_answers = 0;
    std::thread watcher([&] { health_answers = watch_health(server.port(), over, findings); });
    std::thread slow([&] { send_slowly(server.port(), findings); });
    std::vector<std::thread> senders;
    for (unsigned i = 0; i < kConnections; ++i) {
        senders.emplace_back([&, i] {
            send_malformed(
                server.port(),
                MalformedRequests(openapi, seed + 2 + i),
                count / kConnections,
                findings
            );
        });
    }
    for (std::thread& sender : senders) {
        sender.join();
    }
    slow.join();
    over = true;
    watcher.join();
    EXPECT_EQ(findings.text(), "");
    EXPECT_GT(health_answers, 0U);
    ASSERT_TRUE(server.running()) << server.log();

    // A connection that is closing takes a moment to be gone.
    const auto until = std::chrono::steady_clock::now() + 30s;
    while (descriptors(server) > open_before && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(20ms);
    }
    EXPECT_LE(descriptors(server), open_before);
    const long growth = memory_kib(server, "VmRSS") - memory_before;
    const long peak = memory_kib(server, "VmHWM") - memory_before;
    std::printf(
        "%u requests, %u health answers; RSS %ld KiB, %+ld KiB in the end, %+ld KiB at most\n",
        count,
        health_answers,
        memory_before,
        growth,
        peak
    );
    EXPECT_LT(growth, kGrowthKib);
    EXPECT_LT(peak, kPeakKib);

    const json::object run = server.submit("main", "still there?");
    const json::object result = server.wait_for_end(std::string(run.at("run_id").as_string()));
    EXPECT_EQ(result.at("status"), "completed") << json::serialize(result);
    EXPECT_EQ(result.at("output"), "hello");
    EXPECT_EQ(server.log().find("http_failure"), std::string::npos) << server.log();
    EXPECT_EQ(server.stop(), 0);
}

}  // namespace
}  // namespace ars::tests
