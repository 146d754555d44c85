// Whatever a provider sends: the parser must give the same events for every way the bytes are cut,
// and the reply builder must not fall over what is in them. The first byte says how the input is
// cut.
#include "runtime/models/chat_reply.hpp"
#include "runtime/models/sse_parser.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace ars::models;

constexpr std::size_t kMaxEventBytes = 4096;

struct NoSink final : DeltaSink {
    void text(std::string_view) override {}
    void reasoning(std::string_view) override {}
    void restart(std::string_view) override {}
};

// All events of `bytes` given in pieces of `step`, and whether the parser gave up.
std::vector<std::string> events_of(std::string_view bytes, std::size_t step) {
    SseParser parser(kMaxEventBytes);
    std::vector<std::string> out;
    const auto drain = [&] {
        while (const auto event = parser.next()) {
            out.push_back(std::string(event->type) + "\x1f" + std::string(event->data));
        }
    };
    while (!bytes.empty()) {
        parser.feed(bytes.substr(0, step));
        bytes.remove_prefix(std::min(step, bytes.size()));
        drain();
    }
    parser.finish();
    drain();
    out.push_back(parser.overflowed() ? "overflowed" : "whole");
    return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) {
        return 0;
    }
    const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    const std::size_t step = std::size_t{data[0]} % 61 + 1;
    const auto whole = events_of(bytes, bytes.size() + 1);
    if (whole != events_of(bytes, step) || whole != events_of(bytes, 1)) {
        std::abort();
    }
    NoSink sink;
    std::vector<ToolSchemaPtr> tools;
    for (const char* name : {"execute", "read_file"}) {
        tools.push_back(std::make_shared<ToolSchema>(name, "", boost::json::object{}));
    }
    ReplyBuilder builder(tools, 100, sink);
    for (const std::string& event : whole) {
        if (!builder.feed(std::string_view(event).substr(event.find('\x1f') + 1))) {
            break;
        }
    }
    [[maybe_unused]] const auto reply = builder.take();
    return 0;
}
