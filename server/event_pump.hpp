// What every server-sent event stream does: send what there is, wait for more, fill silence with
// comments. Nothing is queued for a reader: a slow one only lags, and one that left changes
// nothing for anybody.
#pragma once

#include "server/api.hpp"
#include "server/http_message.hpp"

#include <string>

namespace ars::server {

class EventPump : public StreamBody {
  public:
    // `api` outlives the stream.
    explicit EventPump(Api& api) : api_(api) {}
    base::Task<void> run(StreamWriter& writer) final;

  protected:
    // Appends a slice of what is new. True when nothing can follow it.
    virtual bool gather(const store::ReadTxn& txn, std::string& out) = 0;
    // Until something may be new; false when the deadline passed.
    virtual base::Task<bool> wait(base::Deadline deadline) = 0;
    // The last words of a stream whose store can't be read.
    virtual void append_failure(std::string& out) = 0;

    Api& api_;

  private:
    bool gather_or_fail(std::string& out);
};

// The payload of append_failure().
inline constexpr std::string_view kStoreFailure = R"({"reason":"db_error","retryable":true})";

}  // namespace ars::server
