// A name server on 127.0.0.1 that answers from a table, counts what it is asked, or says nothing.
#pragma once

#include "base/fd.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace ars::tests {

class NameServer {
  public:
    // Addresses of each name, IPv4 and IPv6.
    using Table = std::map<std::string, std::vector<std::string>>;

    explicit NameServer(Table table, bool silent = false)
        : table_(std::move(table)), socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        auto* raw = reinterpret_cast<sockaddr*>(&address);
        EXPECT_EQ(::bind(socket_.get(), raw, size), 0);
        EXPECT_EQ(::getsockname(socket_.get(), raw, &size), 0);
        name_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
        thread_ = std::thread([this, silent] { serve(silent); });
    }
    ~NameServer() {
        stop_ = true;
        ::shutdown(socket_.get(), SHUT_RDWR);
        thread_.join();
    }
    NameServer(const NameServer&) = delete;
    NameServer& operator=(const NameServer&) = delete;

    [[nodiscard]] const std::string& name() const { return name_; }
    // The names that were asked for, in order, one for each query.
    [[nodiscard]] std::vector<std::string> asked() const {
        const std::lock_guard lock(mutex_);
        return asked_;
    }

  private:
    static constexpr std::size_t kHeader = 12;

    void serve(bool silent) {
        const timeval limit{0, 50'000};
        ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        while (!stop_) {
            char query[512];
            sockaddr_in from{};
            socklen_t size = sizeof from;
            auto* raw = reinterpret_cast<sockaddr*>(&from);
            const ssize_t n = ::recvfrom(socket_.get(), query, sizeof query, 0, raw, &size);
            if (n > static_cast<ssize_t>(kHeader)) {
                const std::string answer =
                    answer_to(std::string(query, static_cast<std::size_t>(n)));
                if (!silent) {
                    ::sendto(socket_.get(), answer.data(), answer.size(), 0, raw, size);
                }
            }
        }
    }

    static std::string question_name(const std::string& query) {
        std::string name;
        std::size_t at = kHeader;
        while (at < query.size() && query[at] != 0) {
            const auto length = static_cast<unsigned char>(query[at]);
            name += (name.empty() ? "" : ".") + query.substr(at + 1, length);
            at += length + 1U;
        }
        return name;
    }

    std::string answer_to(const std::string& query) {
        const std::string name = question_name(query);
        {
            const std::lock_guard lock(mutex_);
            asked_.push_back(name);
        }
        const std::size_t question_end = query.find('\0', kHeader) + 5;
        const bool v4 = query[question_end - 3] == 1;
        std::string records;
        char count = 0;
        const auto found = table_.find(name);
        if (found != table_.end()) {
            for (const std::string& address : found->second) {
                unsigned char bytes[16];
                if (::inet_pton(v4 ? AF_INET : AF_INET6, address.c_str(), bytes) == 1) {
                    const std::size_t size = v4 ? 4 : 16;
                    records += std::string("\xC0\x0C\0", 3) + (v4 ? '\1' : '\34');
                    records += std::string("\0\1\0\0\0\x3C\0", 7) + static_cast<char>(size);
                    records.append(reinterpret_cast<const char*>(bytes), size);
                    ++count;
                }
            }
        }
        std::string out = query.substr(0, 2);
        // a response; no error, or no such name
        out += std::string("\x81") + (found != table_.end() ? '\x80' : '\x83');
        out += std::string("\0\1\0", 3) + count + std::string("\0\0\0\0", 4);
        return out + query.substr(kHeader, question_end - kHeader) + records;
    }

    const Table table_;
    base::Fd socket_;
    std::string name_;
    std::atomic<bool> stop_ = false;
    mutable std::mutex mutex_;
    std::vector<std::string> asked_;
    std::thread thread_;
};

}  // namespace ars::tests
