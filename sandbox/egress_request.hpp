// What a client of the proxy may say: the head of one request, read so strictly that whatever we
// send on can be understood in one way only. The head that goes to the server is written anew from
// what was understood; no byte of the client's framing passes through.
#pragma once

#include "sandbox/egress_rules.hpp"

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

namespace ars::sandbox {

// Finds the end of a head that comes in pieces; each byte is looked at once.
class HeadScanner {
  public:
    enum class State : std::uint8_t {
        more,
        complete,
        malformed,  // a bare CR or LF, a control character, or nothing that begins like HTTP
        too_large,  // over limits::kEgressHeadBytes
    };
    // `bytes` is all that came so far, from the first byte on.
    [[nodiscard]] State scan(std::string_view bytes);
    // After `complete`: bytes of the head with its empty line.
    [[nodiscard]] std::size_t size() const { return seen_; }

  private:
    std::size_t seen_ = 0;
    std::size_t line_bytes_ = 0;  // of the current line
    bool after_cr_ = false;
};

struct EgressRequest {
    EgressTarget target;
    bool tunnel = false;  // CONNECT
    // For the server, with the empty line; of a tunnel empty.
    std::string head;
    bool chunked = false;
    std::uint64_t content_length = 0;  // when not chunked
};

struct EgressFault {
    unsigned status = 400;
    std::string message;
    std::string host = {};  // that is not allowed, canonical
};

// `head` is a complete head with its empty line. Faults are 400, 403 (a host that is no canonical
// name), 405, 501 and 505. Whether the target is allowed is for EgressRules to say.
[[nodiscard]] std::expected<EgressRequest, EgressFault> parse_egress_request(std::string_view head);

// The head of a server's answer, `head` being all up to its empty line, with "Connection: close"
// as its first field: one request is served on a connection.
[[nodiscard]] std::string closing_head(std::string_view head);
// The bytes up to and with the first empty line, CRLF or LF; npos when there is none yet. The first
// `looked_at` bytes are known to hold none.
[[nodiscard]] std::size_t answer_head_end(std::string_view bytes, std::size_t looked_at);
// 100 to 199 but 101: another head follows.
[[nodiscard]] bool is_interim_answer(std::string_view head);

}  // namespace ars::sandbox
