// A model server that thinks in no time: one thread, kept-alive loopback connections, streamed
// chat completions. It answers a message of a person with a call of write_todos, and a tool's
// result with a text. What a run costs beside it is ours.
#pragma once

#include "base/fd.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace ars::bench {

// Threads of the bench count for themselves, so that the server's CPU is told from theirs.
[[nodiscard]] double thread_cpu_seconds();

class FastModel {
  public:
    // `padding` bytes more in each text.
    explicit FastModel(std::size_t padding = 0);
    ~FastModel();
    FastModel(const FastModel&) = delete;
    FastModel& operator=(const FastModel&) = delete;

    [[nodiscard]] int port() const { return port_; }
    // While held, requests are taken and not answered.
    void hold();
    void release();
    // Bytes of the newest request's body.
    [[nodiscard]] std::size_t last_request_bytes() const { return last_bytes_.load(); }
    [[nodiscard]] std::size_t held() const { return held_.load(); }
    [[nodiscard]] double cpu_seconds() const { return cpu_seconds_.load(); }
    // The bodies of the newest requests of a run's first and second step.
    [[nodiscard]] std::string first_body() const;
    [[nodiscard]] std::string second_body() const;

  private:
    struct Connection {
        base::Fd socket;
        std::string in;
        bool second = false;  // of the request that is held
        bool waits = false;
    };

    void serve();
    void accept_all();
    void read_from(Connection& connection);
    void answer(Connection& connection);
    void forget(Connection& connection);
    void note(bool second, std::string_view body);

    base::Fd listener_;
    base::Fd poller_;
    base::Fd wake_;
    int port_ = 0;
    std::string call_reply_;
    std::string text_reply_;
    std::deque<Connection> connections_;  // by index; a closed one stays, empty
    std::atomic<bool> hold_ = false;
    std::atomic<bool> stopping_ = false;
    std::atomic<std::size_t> held_ = 0;
    std::atomic<std::size_t> last_bytes_ = 0;
    std::atomic<double> cpu_seconds_ = 0;
    mutable std::mutex mutex_;
    std::string seen_[2];
    std::thread thread_;
};

}  // namespace ars::bench
