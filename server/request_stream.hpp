// What becomes of one request as a server-sent event stream: its place in the queue each time it
// changes, then once that it is a run, or how it left the queue, and the stream closes. Nothing is
// stored for it: a reader that comes back is told how things stand.
#pragma once

#include "server/event_pump.hpp"

#include <cstddef>
#include <string>

namespace ars::server {

class RequestEventStream final : public EventPump {
  public:
    RequestEventStream(Api& api, store::RequestRecord request)
        : EventPump(api), request_(std::move(request)) {}

  private:
    bool gather(const store::ReadTxn& txn, std::string& out) override;
    base::Task<bool> wait(base::Deadline deadline) override;
    void append_failure(std::string& out) override;

    store::RequestRecord request_;
    std::size_t shown_position_ = 0;
};

}  // namespace ars::server
