// A reader of one event stream that sees bytes: it can take them in pieces of any size, stop
// taking them, hang up in the middle of a frame, and vanish without a word.
#pragma once

#include "base/fd.hpp"

#include <boost/json/object.hpp>

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ars::tests {

struct EventFrame {
    std::string id;
    std::string type;
    std::string bytes;  // as it came, with its empty line

    [[nodiscard]] boost::json::object data() const;
    bool operator==(const EventFrame&) const = default;
};

class EventReader {
  public:
    struct Options {
        std::string after;       // Last-Event-ID, when not empty
        int receive_buffer = 0;  // bytes of the kernel's, when not 0
    };
    // Sends the request. Throws when the connection is refused.
    EventReader(int port, const std::string& target) : EventReader(port, target, Options()) {}
    EventReader(int port, const std::string& target, const Options& options);

    // The next event, nothing when the stream is over. Throws when nothing comes for a minute or
    // the answer is not 200.
    std::optional<EventFrame> next();
    // All until the stream is over.
    std::vector<EventFrame> rest();
    // Takes at most so many bytes off the connection; false when it is over.
    bool take(std::size_t most);
    // Whole frames of what was taken and not handed out yet.
    std::vector<EventFrame> taken();

    [[nodiscard]] std::size_t heartbeats() const { return heartbeats_; }
    // The answer to a refused request: status and body, read to its end.
    std::string refusal();
    // From now on every packet to this socket is lost, acknowledgements and all, as when a machine
    // on the way was switched off.
    void vanish();

  private:
    void decode();
    void take_frames();

    base::Fd socket_;
    std::string raw_;
    std::string text_;
    std::deque<EventFrame> frames_;
    bool in_body_ = false;
    std::size_t chunk_left_ = 0;
    std::size_t heartbeats_ = 0;
};

// Everything from after the event `after` ("" = the start) to the end of the stream.
std::vector<EventFrame> read_frames(
    int port, const std::string& target, const std::string& after = {}
);

}  // namespace ars::tests
