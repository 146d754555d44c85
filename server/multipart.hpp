// A multipart/form-data body, part by part, as it arrives: nothing is kept but the piece at hand.
// RFC 7578 and no more: nested multiparts and encodings of parts are not read.
#pragma once

#include "base/async.hpp"
#include "base/result.hpp"
#include "server/http_message.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace ars::server {

struct FormPart {
    std::string name;
    std::optional<std::string> filename;  // any bytes; absent: a plain field
};

// The boundary of a Content-Type, or nothing when it is not multipart/form-data with a good one.
[[nodiscard]] std::optional<std::string> multipart_boundary(std::string_view content_type);

class MultipartReader {
  public:
    // `peer` outlives the reader.
    MultipartReader(HttpPeer& peer, std::string_view boundary);

    // Skips what is left of the part at hand. Nothing after the last. Errors: those of read_body(),
    // and invalid "bad_multipart".
    base::Task<base::Result<std::optional<FormPart>>> next_part();
    // The next piece of the part at hand, until the next call; empty when it is over.
    base::Task<base::Result<std::string_view>> read();
    // The whole part; too_large "field_too_large" over `most` bytes.
    base::Task<base::Result<std::string>> read_whole(std::size_t most);

  private:
    base::Task<base::Result<bool>> fill();
    base::Task<base::Result<std::string_view>> line();

    HttpPeer& peer_;
    std::string delimiter_;  // CRLF "--" boundary
    std::string buffer_;     // from at_ on: came and not given
    std::size_t at_ = 0;
    bool part_over_ = true;  // the delimiter at the end of the part at hand was passed
    bool over_ = false;      // so was the last one
};

}  // namespace ars::server
