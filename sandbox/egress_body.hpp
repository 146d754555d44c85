// The chunked body of a request, taken apart so that it can be put together anew: extensions and
// trailers are dropped, and what goes on has one reading only.
#pragma once

#include <cstdint>
#include <string_view>

namespace ars::sandbox {

class ChunkedReader {
  public:
    enum class State : std::uint8_t { more, done, malformed };

    // Takes framing from the front of `in` and then at most one run of data, which it leaves in
    // `data` (a part of `in`). Call until `in` is empty or the state is not `more`; what follows
    // the body stays in `in`.
    [[nodiscard]] State next(std::string_view& in, std::string_view& data);

  private:
    enum class At : std::uint8_t {
        size,
        extension,
        size_end,
        data,
        data_cr,
        data_end,
        trailer,
        done
    };
    [[nodiscard]] bool take(char c);
    [[nodiscard]] bool take_size(char c);
    [[nodiscard]] bool take_trailer(char c);

    At at_ = At::size;
    std::uint64_t left_ = 0;   // bytes of the chunk
    unsigned digits_ = 0;      // of its size
    unsigned ignored_ = 0;     // bytes of extensions and trailers so far
    unsigned line_bytes_ = 0;  // of the current trailer line
    bool after_cr_ = false;
};

}  // namespace ars::sandbox
