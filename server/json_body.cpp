#include "server/json_body.hpp"

#include "base/limits.hpp"

#include <boost/json/parser.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace ars::server {

namespace {

JsonFault fault_at(std::string_view text, std::size_t offset, const boost::json::error_code& ec) {
    const std::string_view before = text.substr(0, std::min(offset, text.size()));
    JsonFault fault;
    fault.line = 1 + static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
    const std::size_t line_start = before.rfind('\n');
    fault.column =
        line_start == std::string_view::npos ? before.size() + 1 : before.size() - line_start;
    fault.reason = ec.message();
    return fault;
}

}  // namespace

std::expected<boost::json::value, JsonFault> parse_json(std::string_view text) {
    boost::json::parse_options options;
    options.max_depth = static_cast<std::size_t>(base::limits::kJsonDepth);
    boost::json::parser parser({}, options);
    boost::json::error_code ec;
    const std::size_t used = parser.write_some(text.data(), text.size(), ec);
    if (ec) {
        return std::unexpected(fault_at(text, used, ec));
    }
    if (used < text.size()) {
        return std::unexpected(fault_at(text, used, boost::json::error::extra_data));
    }
    return parser.release();
}

std::expected<boost::json::value, HttpResponse> read_json(const HttpRequest& request) {
    auto parsed = parse_json(request.body);
    if (parsed) {
        return std::move(*parsed);
    }
    const JsonFault& fault = parsed.error();
    boost::json::object more;
    more["line"] = fault.line;
    more["column"] = fault.column;
    return std::unexpected(error_response(
        400,
        "invalid_json",
        request.body.empty() ? std::string("the body is empty; send a JSON object")
                             : fmt::format(
                                   "the body is not JSON: line {}, column {}: {}",
                                   fault.line,
                                   fault.column,
                                   fault.reason
                               ),
        std::move(more)
    ));
}

}  // namespace ars::server
