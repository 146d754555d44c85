// A closed loop of HTTP requests over kept-alive loopback connections: as many at once as asked,
// each beginning its next round when the one before is over. One thread, no allocation that counts.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace ars::bench {

// What each round says, in order, and a text that every answer must hold.
struct Round {
    std::vector<std::string> requests;
    std::string expected;
};

// "POST <path>" with this body.
[[nodiscard]] std::string post(const std::string& path, const std::string& body);

struct LoadResult {
    std::vector<double> latencies;  // of rounds in the measured time, microseconds
    double seconds = 0;
    double cpu_seconds = 0;  // of this client
    int failed = 0;
    std::string fault;  // the first answer that was wrong
};

struct Load {
    int port = 0;
    int at_once = 1;
    double warm_seconds = 0.3;
    double seconds = 2;
    // Called when the measured time begins and when it is over.
    std::function<void()> begins;
    std::function<void()> ends;
};

[[nodiscard]] LoadResult drive(const Load& load, const Round& round);

}  // namespace ars::bench
