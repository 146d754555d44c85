// Stops all processes of a scope for a moment when they keep its init from its work: some hundred
// that never rest leave it a few milliseconds a second, and looking at each of them would take a
// minute. Stopped, they can neither run nor fork.
#pragma once

#include <chrono>

namespace ars::sandbox {

class Freezer {
  public:
    // At the start of work that may turn out long.
    void begin();
    // Now and then during it: stops the scope once the work has waited for a processor for longer
    // than kPatience. Costs two clock reads.
    void check();
    // At once.
    void freeze();
    // At the end. A process that was stopped before goes on too: after a freeze nobody can tell.
    void thaw();

  private:
    static constexpr std::chrono::milliseconds kPatience{50};

    std::chrono::nanoseconds began_{0};
    std::chrono::nanoseconds used_before_{0};
    bool frozen_ = false;
};

}  // namespace ars::sandbox
