// Server-sent events out of bytes, as the WHATWG grammar has them and as providers really send
// them: CRLF, CR or LF, comments, `data:` without a space, bytes cut anywhere. Pure: no I/O, no
// JSON.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ars::models {

struct SseEvent {
    std::string_view type;  // of the `event:` field; "" when absent
    std::string_view data;  // the `data:` lines, joined by LF
};

class SseParser {
  public:
    // A line or an event over `max_event_bytes` ends the parsing: see overflowed().
    explicit SseParser(std::size_t max_event_bytes) : max_event_bytes_(max_event_bytes) {}

    // Adds what came from the wire. Call next() until it is empty afterwards.
    void feed(std::string_view bytes);
    // The stream is over: an event that lacks its closing empty line counts too (the grammar drops
    // it, but providers end their last one so).
    void finish() { finished_ = true; }
    // The next complete event; its views live until the next call of any function.
    [[nodiscard]] std::optional<SseEvent> next();
    [[nodiscard]] bool overflowed() const { return overflowed_; }

  private:
    std::optional<std::string_view> take_line();
    void take_field(std::string_view line);

    std::size_t max_event_bytes_;
    std::string buffer_;  // bytes not yet made into lines start at read_
    std::size_t read_ = 0;
    std::size_t scanned_ = 0;  // no line end stands before this
    std::string type_;
    std::string data_;
    std::string given_type_;  // what the views of the last event point at
    std::string given_data_;
    bool has_data_ = false;
    bool first_line_ = true;
    bool skip_lf_ = false;  // the last line ended with CR: an LF right after it belongs to it
    bool finished_ = false;
    bool overflowed_ = false;
};

}  // namespace ars::models
