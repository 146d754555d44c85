#include "runtime/runs/delta_writer.hpp"

#include "base/digest.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "runtime/runs/events.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace ars::runs {

namespace {

// Of one event, whatever a fast model sends during a commit: an event is what a stalled reader
// holds in memory.
constexpr std::size_t kDeltaBytes = 16 * base::limits::kKiB;

// Takes the first kDeltaBytes off, and no half of a code point.
std::string_view take_piece(std::string_view& rest) {
    std::size_t size = std::min(rest.size(), kDeltaBytes);
    while (size < rest.size() && size > kDeltaBytes - 4 &&
           (static_cast<unsigned char>(rest[size]) & 0xC0U) == 0x80U) {
        --size;
    }
    const std::string_view piece = rest.substr(0, size);
    rest.remove_prefix(size);
    return piece;
}

}  // namespace

DeltaWriter::DeltaWriter(store::Store& store, LiveRun& run, const base::Log& log)
    : store_(store),
      run_(run),
      log_(log),
      wake_(run.changed.executor()),
      message_id_(base::random_uuid()) {}

bool DeltaWriter::full() const {
    return text_.size() + reasoning_.size() >= base::limits::kDeltaFlushChars || !ready_.empty();
}

void DeltaWriter::added() {
    const bool first = flush_at_.at == base::Deadline::never().at;
    if (first) {
        flush_at_ = base::Deadline::after(base::limits::kDeltaFlush);
    }
    if (auto then = std::exchange(first_piece_came_, nullptr)) {
        then();
    }
    if (first || full()) {
        wake_.notify_all();
    }
}

void DeltaWriter::text(std::string_view piece) {
    text_ += piece;
    added();
}

void DeltaWriter::reasoning(std::string_view piece) {
    reasoning_ += piece;
    added();
}

void DeltaWriter::restart(std::string_view reason) {
    gather();
    ready_.push_back(events::reset(run_.record, message_id_, reason));
    message_id_ = base::random_uuid();
    streams_ = false;
    added();
}

void DeltaWriter::gather() {
    std::string_view text = text_;
    std::string_view reasoning = reasoning_;
    while (!text.empty() || !reasoning.empty()) {
        // A piece may end inside a code point: clean it only here, where it becomes JSON.
        const std::string words = base::to_utf8(take_piece(text)).text;
        const std::string thoughts = base::to_utf8(take_piece(reasoning)).text;
        ready_.push_back(events::message_delta(run_.record, message_id_, words, thoughts));
        streams_ = true;
    }
    text_.clear();
    reasoning_.clear();
    flush_at_ = base::Deadline::never();
}

std::vector<store::EventRecord> DeltaWriter::take_events() {
    gather();
    return std::exchange(ready_, {});
}

DeltaWriter::Rest DeltaWriter::take_rest() {
    const std::size_t size = text_.size() + reasoning_.size();
    if (streams_ || size == 0 || size > kDeltaBytes) {
        return {take_events(), false};
    }
    return {std::exchange(ready_, {}), true};
}

void DeltaWriter::close() {
    closed_ = true;
    wake_.notify_all();
}

base::Task<void> DeltaWriter::pump() {
    while (!closed_) {
        if (empty() || (!full() && !flush_at_.passed())) {
            co_await wake_.wait(flush_at_
            );  // never while empty: the model call's own limits bound it
            continue;
        }
        std::vector<store::EventRecord> batch = take_events();
        std::function<base::Result<bool>(store::WriteTxn&)> change =
            [batch = std::move(batch)](store::WriteTxn& txn) mutable -> base::Result<bool> {
            for (store::EventRecord& event : batch) {
                txn.add_event(event);
            }
            return true;
        };
        const base::Result<bool> written = co_await store_.write<bool>(std::move(change));
        if (!written) {
            // Deltas are a preview: the finished message, which must be stored, carries all of the
            // text.
            log_.warning(
                "deltas_not_stored",
                {{"run_id", run_.record.id}, {"error", written.error().message}}
            );
        }
        run_.changed.notify_all();
    }
}

}  // namespace ars::runs
