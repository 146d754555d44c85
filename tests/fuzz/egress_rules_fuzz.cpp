// Whatever a sandboxed program sends its proxy. What is let through must have one reading: the head
// written for the server parses to the same host, and a body means the same however it is cut. The
// first byte says how the input is cut.
#include "base/limits.hpp"
#include "sandbox/egress_body.hpp"
#include "sandbox/egress_request.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

namespace {

using namespace ars::sandbox;

void require(bool holds) {
    if (!holds) {
        std::abort();
    }
}

bool is_canonical(std::string_view host) {
    return !host.empty() && host.front() != '.' && host.back() != '.' &&
           std::ranges::all_of(host, [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
                      c == '_';
           });
}

std::size_t count(std::string_view text, std::string_view what) {
    std::size_t found = 0;
    for (std::size_t at = text.find(what); at != std::string_view::npos;
         at = text.find(what, at + what.size())) {
        ++found;
    }
    return found;
}

HeadScanner::State scan(std::string_view bytes, std::size_t step, std::size_t& size) {
    HeadScanner scanner;
    auto state = HeadScanner::State::more;
    for (std::size_t end = 0; end < bytes.size() && state == HeadScanner::State::more;) {
        end = std::min(end + step, bytes.size());
        state = scanner.scan(bytes.substr(0, end));
    }
    size = scanner.size();
    return state;
}

void check_request(const EgressRequest& request) {
    require(is_canonical(request.target.host.text()) && request.target.port != 0);
    const auto again = HostName::parse(request.target.host.text());
    require(again && *again == request.target.host);
    if (request.tunnel) {
        require(request.head.empty() && !request.chunked && request.content_length == 0);
        return;
    }
    // One line for each of what decides where the request goes and where it ends.
    const std::string host =
        request.target.port == 80 ? request.target.host.text() : request.target.text();
    require(count(request.head, "\r\nHost: " + host + "\r\n") == 1);
    require(count(request.head, "\r\n\r\n") == 1 && request.head.ends_with("\r\n\r\n"));
    std::string lower = request.head;
    std::ranges::transform(lower, lower.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    require(count(lower, "\r\nhost:") == 1);
    require(count(lower, "\r\nconnection:") == 1);
    require(count(lower, "\r\ntransfer-encoding:") == (request.chunked ? 1 : 0));
    require(count(lower, "\r\ncontent-length:") + (request.chunked ? 1 : 0) <= 1);
    require(request.content_length == 0 || !request.chunked);
    require(count(lower, "\n") == count(lower, "\r\n") && count(lower, "\r") == count(lower, "\n"));
}

std::pair<ChunkedReader::State, std::string> unchunked(std::string_view bytes, std::size_t step) {
    ChunkedReader reader;
    auto state = ChunkedReader::State::more;
    std::string out;
    while (!bytes.empty() && state == ChunkedReader::State::more) {
        std::string_view piece = bytes.substr(0, step);
        bytes.remove_prefix(piece.size());
        while (!piece.empty() && state == ChunkedReader::State::more) {
            std::string_view data;
            state = reader.next(piece, data);
            out += data;
        }
    }
    return {state, std::move(out)};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) {
        return 0;
    }
    const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    const std::size_t step = std::size_t{data[0]} % 61 + 1;

    std::size_t head_size = 0;
    std::size_t other_size = 0;
    const auto state = scan(bytes, bytes.size() + 1, head_size);
    require(state == scan(bytes, step, other_size) && head_size == other_size);
    if (state == HeadScanner::State::complete) {
        if (const auto request = parse_egress_request(bytes.substr(0, head_size))) {
            check_request(*request);
        }
    }
    if (const auto host = HostName::parse(bytes)) {
        // As an entry it allows itself, on the ports of the web.
        const auto rules = EgressRules::parse({std::string(bytes)});
        require(is_canonical(host->text()) && rules.has_value());
        require(rules->check({*host, 443}).has_value() && !rules->check({*host, 22}));
    }
    require(unchunked(bytes, bytes.size() + 1) == unchunked(bytes, step));
    return 0;
}
