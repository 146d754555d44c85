// The events of one run as a server-sent event stream: what the log holds after a cursor, then what
// is added, until the run's `end`.
#pragma once

#include "server/event_frame.hpp"
#include "server/event_pump.hpp"

#include <string>

namespace ars::server {

class RunEventStream final : public EventPump {
  public:
    // Sends events with an id above `after`.
    RunEventStream(Api& api, store::RunRecord run, store::EventId after, Detail detail);

  private:
    bool gather(const store::ReadTxn& txn, std::string& out) override;
    base::Task<bool> wait(base::Deadline deadline) override;
    void append_failure(std::string& out) override;

    void append(
        std::string& out, std::string_view type, std::string_view payload, std::string id = {}
    );
    void append_gap(const store::ReadTxn& txn, std::string& out);
    bool append_end(const store::ReadTxn& txn, std::string& out);

    store::RunRecord run_;  // its ids; status and facts are read anew
    store::EventId cursor_;
    Detail detail_;
    std::size_t batch_;
};

}  // namespace ars::server
