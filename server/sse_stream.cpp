#include "server/sse_stream.hpp"

#include "base/clock.hpp"

#include <boost/asio/post.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <chrono>
#include <exception>

namespace ars::server {

namespace {

// One write to one reader: what a slow reader may hold in memory, give or take one event.
constexpr std::size_t kSliceBytes = 64 * base::limits::kKiB;
constexpr std::size_t kFirstBatch = 16;   // events of the first read, before their size is known
constexpr std::size_t kKeptBytes = 1024;  // of the buffer of a stream that waits
constexpr std::string_view kEndEvent = "end";

// Ids and event names come from inside, but a text with a quote in it must not break the envelope.
void append_quoted(std::string& out, std::string_view text) {
    const bool plain = std::ranges::all_of(text, [](char c) {
        return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
    });
    if (plain) {
        out += '"';
        out += text;
        out += '"';
    } else {
        out += boost::json::serialize(boost::json::string(text));
    }
}

// A frame ends at a line break, and JSON allows them only between tokens.
void append_one_line(std::string& out, std::string_view json) {
    const std::size_t start = out.size();
    out += json;
    if (json.find_first_of("\r\n") != std::string_view::npos) {
        std::replace_if(
            out.begin() + static_cast<std::ptrdiff_t>(start),
            out.end(),
            [](char c) { return c == '\n' || c == '\r'; },
            ' '
        );
    }
}

void append_frame(
    std::string& out,
    std::string_view type,
    std::string_view payload,
    std::int64_t created_ms,
    const store::RunRecord& run,
    std::string_view id
) {
    out += "event: ";
    out += type;
    out += "\ndata: {\"schema_version\":1,\"run_id\":";
    append_quoted(out, run.id);
    out += ",\"thread_id\":";
    append_quoted(out, run.thread_id);
    out += ",\"event\":";
    append_quoted(out, type);
    out += ",\"payload\":";
    append_one_line(out, payload.empty() ? std::string_view("{}") : payload);
    out += ",\"created_at\":\"";
    out += base::iso8601(created_ms);
    out += "\"}\n";
    if (!id.empty()) {
        out += "id: ";
        out += id;
        out += '\n';
    }
    out += '\n';
}

// For a reader whose cursor is past the stored `end`, or whose `end` expired. It has no id: it is
// not in the log.
void append_synthesized_end(std::string& out, const store::RunRecord& run) {
    boost::json::object payload;
    payload["status"] = store::to_string(run.status);
    payload["request_id"] = run.request_id;
    append_frame(
        out,
        kEndEvent,
        boost::json::serialize(payload),
        run.finished_ms != 0 ? run.finished_ms : base::now_ms(),
        run,
        {}
    );
}

void append_store_failure(std::string& out, const store::RunRecord& run) {
    append_frame(
        out, "error", R"({"reason":"db_error","retryable":true})", base::now_ms(), run, {}
    );
}

}  // namespace

void append_event_frame(
    std::string& out, const store::EventRecord& event, const store::RunRecord& run
) {
    append_frame(out, event.type, event.payload, event.created_ms, run, store::to_string(event.id));
}

RunEventStream::RunEventStream(Api& api, store::RunRecord run, store::EventId after)
    : api_(api), run_(std::move(run)), cursor_(after), batch_(kFirstBatch) {}

base::Task<void> RunEventStream::run(StreamWriter& writer) {
    std::string out;
    auto heartbeat = base::Deadline::after(api_.limits.heartbeat);
    for (;;) {
        const bool over = gather(out);
        if (!out.empty()) {
            co_await writer.write(out);
            heartbeat = base::Deadline::after(api_.limits.heartbeat);
            out.clear();
            if (over) {
                co_return;
            }
            // A long replay lets others run between its slices.
            co_await base::asio::post(base::asio::use_awaitable);
            continue;
        }
        if (over) {
            co_return;
        }
        if (out.capacity() > kKeptBytes) {
            std::string().swap(out);
        }
        const bool woken = co_await api_.runs.wait_for_events(run_.no, heartbeat);
        if (!woken) {
            co_await writer.write(": heartbeat\n\n");
            heartbeat = base::Deadline::after(api_.limits.heartbeat);
        }
    }
}

bool RunEventStream::gather(std::string& out) {
    try {
        return api_.runs.store().read([this, &out](const store::ReadTxn& txn) {
            return gather_from(txn, out);
        });
    } catch (const std::exception& error) {
        api_.log.error("sse_read_failed", {{"run_id", run_.id}, {"reason", error.what()}});
        out.clear();
        append_store_failure(out, run_);
        return true;
    }
}

bool RunEventStream::gather_from(const store::ReadTxn& txn, std::string& out) {
    const std::vector<store::EventRecord> events = txn.events(run_.no, cursor_, batch_);
    std::size_t taken = 0;
    for (const store::EventRecord& event : events) {
        append_event_frame(out, event, run_);
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
    if (!events.empty()) {
        return false;
    }
    const auto run = txn.run(run_.no);
    const bool at_rest =
        !run || store::is_terminal(run->status) || run->status == store::RunStatus::interrupted;
    if (at_rest && run) {
        append_synthesized_end(out, *run);
    }
    return at_rest;
}

}  // namespace ars::server
