// Streamed text on its way into the event log: pieces are gathered for limits::kDeltaFlush or
// limits::kDeltaFlushChars, so that a fast model costs a commit per batch and not per token.
#pragma once

#include "runtime/models/model_client.hpp"
#include "runtime/runs/live_run.hpp"
#include "runtime/store/store.hpp"

#include <functional>
#include <string>
#include <vector>

namespace ars::runs {

class DeltaWriter final : public models::DeltaSink {
  public:
    DeltaWriter(store::Store& store, LiveRun& run, const base::Log& log);

    void text(std::string_view piece) override;
    void reasoning(std::string_view piece) override;
    void restart(std::string_view reason) override;

    // Called once, at the first piece: a reply of tool calls alone needs no pump.
    void when_first_piece_came(std::function<void()> then) { first_piece_came_ = std::move(then); }
    // Commits batches until close(); spawn it next to the model call and join it after.
    base::Task<void> pump();
    void close();
    // What was not committed yet: goes into the commit of the finished message.
    struct Rest {
        std::vector<store::EventRecord> events;
        // Nothing of the message was streamed: it can be shown as it is stored.
        bool whole_message = false;
    };
    [[nodiscard]] Rest take_rest();
    // Public id of the message being streamed; a restart gives a new one.
    [[nodiscard]] const std::string& message_id() const { return message_id_; }

  private:
    void added();
    void gather();
    [[nodiscard]] std::vector<store::EventRecord> take_events();
    [[nodiscard]] bool empty() const {
        return ready_.empty() && text_.empty() && reasoning_.empty();
    }
    [[nodiscard]] bool full() const;

    store::Store& store_;
    LiveRun& run_;
    const base::Log& log_;
    base::Notifier wake_;
    std::string message_id_;
    std::string text_;
    std::string reasoning_;
    bool streams_ = false;  // some of the message is an event already
    std::vector<store::EventRecord> ready_;
    std::function<void()> first_piece_came_;
    base::Deadline flush_at_ = base::Deadline::never();
    bool closed_ = false;
};

}  // namespace ars::runs
