// libFuzzer entry: any bytes that may stand in a damaged data file.
#include "tests/fuzz/store_codec.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    ars::store::codec_accepts({reinterpret_cast<const char*>(data), size});
    return 0;
}
