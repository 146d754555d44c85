// What becomes of one request as a server-sent event stream: its place in the queue each time it
// changes, then once that it is a run, or how it left the queue, and the stream closes. Nothing is
// stored for it: a reader that comes back is told how things stand.
#pragma once

#include "server/api.hpp"
#include "server/http_message.hpp"

#include <cstddef>
#include <string>

namespace ars::server {

class RequestEventStream final : public StreamBody {
  public:
    // `api` outlives the stream.
    RequestEventStream(Api& api, store::RequestRecord request)
        : api_(api), request_(std::move(request)) {}
    base::Task<void> run(StreamWriter& writer) override;

  private:
    // Appends what is new. True when nothing can follow.
    bool gather(std::string& out);
    bool gather_from(const store::ReadTxn& txn, std::string& out);

    Api& api_;
    store::RequestRecord request_;
    std::size_t shown_position_ = 0;
};

}  // namespace ars::server
