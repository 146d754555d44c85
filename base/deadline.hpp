// One time budget, passed down instead of a bare number, so that nested waits share it.
#pragma once

#include <algorithm>
#include <chrono>

namespace ars::base {

using std::chrono::milliseconds;

struct Deadline {
    std::chrono::steady_clock::time_point at;

    [[nodiscard]] static Deadline after(milliseconds budget) {
        return {std::chrono::steady_clock::now() + budget};
    }
    // For waits that something else bounds (an idle server, a suspended run). Name that something.
    [[nodiscard]] static Deadline never() { return {std::chrono::steady_clock::time_point::max()}; }
    [[nodiscard]] Deadline earlier(Deadline other) const { return {std::min(at, other.at)}; }
    [[nodiscard]] bool passed() const { return std::chrono::steady_clock::now() >= at; }
    [[nodiscard]] milliseconds remaining() const {
        const auto left = at - std::chrono::steady_clock::now();
        return std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(left));
    }
};

}  // namespace ars::base
