// The events of one run as a server-sent event stream: what the log holds after a cursor, then what
// is added, until the run's `end`. A reader pulls from the log at its own pace: nothing is queued
// for it, a slow one only lags, and one that left changes nothing for the run.
#pragma once

#include "server/api.hpp"
#include "server/http_message.hpp"

#include <string>

namespace ars::server {

// One event as a frame: `event:`, one `data:` line with the envelope, `id:`.
void append_event_frame(
    std::string& out, const store::EventRecord& event, const store::RunRecord& run
);

class RunEventStream final : public StreamBody {
  public:
    // Sends events with an id above `after`. `api` outlives the stream.
    RunEventStream(Api& api, store::RunRecord run, store::EventId after);
    base::Task<void> run(StreamWriter& writer) override;

  private:
    // Appends the next slice of frames and moves the cursor. True when nothing can follow.
    bool gather(std::string& out);
    bool gather_from(const store::ReadTxn& txn, std::string& out);

    Api& api_;
    store::RunRecord run_;  // its ids; status and facts are read anew
    store::EventId cursor_;
    std::size_t batch_;
};

}  // namespace ars::server
