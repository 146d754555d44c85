// Runs a fuzz target over the files of its corpus, so that old finds are tests of every build.
#include "base/fd.hpp"
#include "base/limits.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
    std::size_t count = 0;
    for (int i = 1; i < argc; ++i) {
        for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
            const auto bytes = ars::base::read_file(entry.path().string(), ars::base::limits::kMiB);
            if (!bytes) {
                std::fprintf(stderr, "%s\n", bytes.error().message.c_str());
                return 1;
            }
            LLVMFuzzerTestOneInput(
                reinterpret_cast<const std::uint8_t*>(bytes->data()), bytes->size()
            );
            ++count;
        }
    }
    std::printf("%zu inputs replayed\n", count);
    return count > 0 ? 0 : 1;
}
