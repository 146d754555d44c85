#include "sandbox/freezer.hpp"

#include <signal.h>
#include <time.h>

namespace ars::sandbox {

namespace {

std::chrono::nanoseconds now(clockid_t clock) {
    timespec time{};
    ::clock_gettime(clock, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

void Freezer::begin() {
    began_ = now(CLOCK_MONOTONIC);
    used_before_ = now(CLOCK_THREAD_CPUTIME_ID);
}

void Freezer::check() {
    if (frozen_) {
        return;
    }
    const auto worked = now(CLOCK_THREAD_CPUTIME_ID) - used_before_;
    if (now(CLOCK_MONOTONIC) - began_ - worked > kPatience) {
        freeze();
    }
}

void Freezer::freeze() {
    // One call for all, so that none forks past it. Keepers come too; the init wakes them.
    frozen_ = ::kill(-1, SIGSTOP) == 0 || frozen_;
}

void Freezer::thaw() {
    if (frozen_) {
        ::kill(-1, SIGCONT);
        frozen_ = false;
    }
}

}  // namespace ars::sandbox
