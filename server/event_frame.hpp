// One event of a run as bytes of a server-sent event stream.
#pragma once

#include "runtime/store/records.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace ars::server {

// How much a reader wants to be told: `brief` leaves out what it knows already (which thread, which
// request) and what is there twice.
enum class Detail : std::uint8_t { full, brief };

struct Frame {
    std::string_view type;
    std::string_view payload;  // JSON
    std::int64_t created_ms = 0;
    std::string id;  // "" = not in the log: a reader's cursor stays where it is
};

// `event:`, one `data:` line with the envelope, `id:`. Nothing when the event says nothing that a
// brief reader wants.
void append_event_frame(
    std::string& out, const Frame& frame, const store::RunRecord& run, Detail detail
);

}  // namespace ars::server
