// What a client may send, as one connection sees it. The parser must come to the same requests and
// the same refusal for every way the bytes are cut, and never ask that more than a head be kept.
// The first byte says how the input is cut.
#include "server/request_parser.hpp"
#include "tests/fuzz/scratch.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace ars::server;
using State = RequestParser::State;

constexpr std::size_t kHeadBytes = 512;
constexpr std::size_t kBodyBytes = 1024;
constexpr std::size_t kRequests = 16;  // of one connection

void add_request(std::vector<std::string>& out, const HttpRequest& request) {
    std::string all(to_string(request.method));
    const auto add = [&all](std::string_view text) {
        all += '\x1f';
        all += text;
    };
    add(request.target());
    add(request.path());
    add(request.raw_query());
    add(request.query("a").value_or("none"));
    for (const char* name :
         {"host", "content-length", "transfer-encoding", "connection", "expect", "x"}) {
        add(request.header(name).value_or("none"));
        add(std::to_string(request.count_headers(name)));
    }
    add(request.http_1_1 ? "1.1" : "1.0");
    add(request.keep_alive ? "keep" : "close");
    add(request.body);
    require(request.body.size() <= kBodyBytes);
    require(request.target().size() <= kHeadBytes);
    out.push_back(std::move(all));
}

// As a session goes on: what was not consumed is given again with what comes next.
std::vector<std::string> requests_of(std::string_view bytes, std::size_t step) {
    HttpRequest request;
    RequestParser parser(request, kHeadBytes, kBodyBytes);
    std::vector<std::string> out;
    std::string kept;
    bool head_judged = false;
    for (;;) {
        State state = State::need_more;
        if (!kept.empty()) {
            kept.erase(0, parser.put(kept, state));
        }
        if (parser.head_done() && !head_judged) {
            head_judged = true;
            if (!parser.limit_body(kBodyBytes)) {
                state = State::body_too_large;
            }
        }
        if (state == State::done) {
            require(parser.done());
            add_request(out, request);
            parser.reset();
            head_judged = false;
            if (out.size() == kRequests) {
                return out;
            }
            continue;
        }
        if (state != State::need_more) {
            out.push_back("refused " + std::to_string(static_cast<int>(state)));
            return out;
        }
        require(kept.size() < kHeadBytes);
        if (bytes.empty()) {
            out.emplace_back(parser.started() ? "cut off" : "closed");
            return out;
        }
        kept += bytes.substr(0, step);
        bytes.remove_prefix(std::min(step, bytes.size()));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) {
        return 0;
    }
    const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    const auto whole = requests_of(bytes, bytes.size() + 1);
    require(whole == requests_of(bytes, std::size_t{data[0]} % 61 + 2));
    require(whole == requests_of(bytes, 1));
    return 0;
}
