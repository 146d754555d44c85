// What a scope's init decodes: start messages and specs. Any bytes must give a value or an error,
// and a value must survive being sent again. The first byte says which, and how many descriptors
// came along.
#include "sandbox/init_spec.hpp"
#include "sandbox/protocol.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include <fcntl.h>

namespace {

using namespace ars;

std::vector<base::Fd> descriptors(std::size_t count) {
    std::vector<base::Fd> out;
    for (std::size_t i = 0; i < count; ++i) {
        out.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    }
    return out;
}

void require(bool holds) {
    if (!holds) {
        std::abort();
    }
}

void check_start(std::string_view bytes) {
    const auto start = sandbox::decode_start(bytes);
    if (!start) {
        return;
    }
    require(!start->argv.empty());
    const auto again = sandbox::decode_start(sandbox::encode_start(*start));
    require(again && again->cwd == start->cwd && again->argv == start->argv);
    require(again->environment == start->environment);
}

void check_spec(std::string_view bytes, std::size_t fds) {
    const auto spec = sandbox::decode_spec(bytes, descriptors(fds));
    if (!spec) {
        return;
    }
    std::size_t taken = 0;
    for (const fsmount::Mount& mount : spec->mounts) {
        taken += mount.fd != nullptr && *mount.fd ? 1 : 0;
    }
    require(taken <= fds);
    const std::string once = sandbox::encode_spec(*spec);
    const auto again = sandbox::decode_spec(once, descriptors(taken));
    require(again && again->mounts.size() == spec->mounts.size());
    require(sandbox::encode_spec(*again) == once);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) {
        return 0;
    }
    const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    if (data[0] % 2 == 0) {
        check_start(bytes);
    } else {
        check_spec(bytes, data[0] / 2 % 4);
    }
    return 0;
}
