// Writes to stdout and stderr from a thread of its own, so that a reader who does not read stalls
// neither the I/O thread nor the time limits that it keeps.
#pragma once

#include "base/async.hpp"
#include "base/limits.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <functional>
#include <memory>
#include <string>

namespace ars::server {

class Printer {
  public:
    explicit Printer(boost::asio::any_io_executor executor);
    Printer(const Printer&) = delete;
    Printer& operator=(const Printer&) = delete;
    // What is not written by then is lost; see flushed().
    ~Printer();

    // Takes `bytes` for the descriptor. False when more than kPrintQueueBytes wait: give no more
    // until `on_room` was called. A descriptor whose reader went away takes everything and drops
    // it.
    bool put(int fd, std::string bytes);
    // On the executor, whenever half of the queue is free again.
    void on_room(std::function<void()> call);
    // True when all was written, false when the deadline passed first.
    base::Task<bool> flushed(base::Deadline deadline);

  private:
    struct Shared;
    std::shared_ptr<Shared> shared_;
};

inline constexpr std::size_t kPrintQueueBytes = 1 * base::limits::kMiB;

}  // namespace ars::server
