#include "server/sse_stream.hpp"

#include "base/clock.hpp"
#include "runtime/runs/events.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>

namespace ars::server {

namespace {

// One write to one reader: what a slow reader may hold in memory, give or take one event.
constexpr std::size_t kSliceBytes = 64 * base::limits::kKiB;
constexpr std::size_t kFirstBatch = 16;  // events of the first read, before their size is known
constexpr std::string_view kEndEvent = "end";

}  // namespace

RunEventStream::RunEventStream(Api& api, store::RunRecord run, store::EventId after, Detail detail)
    : EventPump(api), run_(std::move(run)), cursor_(after), detail_(detail), batch_(kFirstBatch) {}

base::Task<bool> RunEventStream::wait(base::Deadline deadline) {
    return api_.runs.wait_for_events(run_.no, deadline);
}

void RunEventStream::append(
    std::string& out, std::string_view type, std::string_view payload, std::string id
) {
    append_event_frame(out, {type, payload, base::now_ms(), std::move(id)}, run_, detail_);
}

void RunEventStream::append_failure(std::string& out) { append(out, "error", kStoreFailure); }

bool RunEventStream::gather(const store::ReadTxn& txn, std::string& out) {
    for (;;) {
        const std::vector<store::EventRecord> events =
            runs::events::read(txn, run_, cursor_, batch_);
        if (events.empty()) {
            append_gap(txn, out);
            return append_end(txn, out);
        }
        std::size_t taken = 0;
        for (const store::EventRecord& event : events) {
            append_event_frame(
                out,
                {event.type, event.payload, event.created_ms, store::to_string(event.id)},
                run_,
                detail_
            );
            cursor_ = event.id;
            ++taken;
            if (event.type == kEndEvent) {
                return true;
            }
            if (out.size() >= kSliceBytes) {
                break;
            }
        }
        // Large events: read fewer at a time, so that what does not fit into a slice is not decoded
        // twice.
        batch_ = taken < events.size() ? taken : std::min(batch_ * 2, base::limits::kSseBatch);
        if (!out.empty()) {
            return false;
        }
        // A brief reader was spared all of these.
    }
}

// What was dropped behind a reader's back is said, never passed over.
void RunEventStream::append_gap(const store::ReadTxn& txn, std::string& out) {
    const auto last = txn.last_event_id(run_.no);
    if (!last || cursor_ >= *last || !txn.log_expired(run_.no)) {
        return;
    }
    const std::string id = store::to_string(*last);
    const boost::json::object payload{
        {"reason", "retention"}, {"after", store::to_string(cursor_)}, {"through", id}
    };
    append(out, "gap", boost::json::serialize(payload), id);
    cursor_ = *last;
}

// For a reader whose cursor is past the stored `end`, or whose `end` expired. It has no id: it is
// not in the log.
bool RunEventStream::append_end(const store::ReadTxn& txn, std::string& out) {
    const auto run = txn.run(run_.no);
    if (!run) {
        return true;
    }
    if (!store::is_terminal(run->status) && run->status != store::RunStatus::interrupted) {
        return false;
    }
    const boost::json::object payload{
        {"status", store::to_string(run->status)}, {"request_id", run->request_id}
    };
    append(out, kEndEvent, boost::json::serialize(payload));
    return true;
}

}  // namespace ars::server
