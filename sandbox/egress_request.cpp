#include "sandbox/egress_request.hpp"

#include "base/limits.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

namespace ars::sandbox {

namespace {

constexpr std::string_view kUsage =
    "This is the proxy of a sandbox: it takes CONNECT host:port and plain requests for "
    "http://host/..., to hosts of the policy's allowed_hosts";
constexpr std::string_view kHttp = "http://";
constexpr std::uint16_t kHttpPort = 80;

std::unexpected<EgressFault> refuse(unsigned status, std::string message) {
    return std::unexpected(EgressFault{status, std::move(message)});
}

bool is_alpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_token_char(char c) {
    return is_alpha(c) || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_token(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, is_token_char);
}

bool equal(std::string_view a, std::string_view b) {
    const auto lower = [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    };
    return std::ranges::equal(a, b, {}, lower, lower);
}

std::string_view trim_blanks(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::string_view take_line(std::string_view& text) {
    const std::size_t end = std::min(text.find("\r\n"), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 2, text.size()));
    return line;
}

struct Field {
    std::string_view name;
    std::string_view value;
};

struct Head {
    std::string_view method;
    std::string_view target;
    std::string_view version;
    std::vector<Field> fields;

    [[nodiscard]] std::vector<std::string_view> values(std::string_view name) const {
        std::vector<std::string_view> out;
        for (const Field& field : fields) {
            if (equal(field.name, name)) {
                out.push_back(field.value);
            }
        }
        return out;
    }
};

std::expected<Head, EgressFault> split(std::string_view text) {
    Head head;
    std::string_view line = take_line(text);
    const std::size_t first = line.find(' ');
    const std::size_t last = line.rfind(' ');
    if (first == std::string_view::npos || first == last) {
        return refuse(400, "the request line is malformed. " + std::string(kUsage));
    }
    head.method = line.substr(0, first);
    head.target = line.substr(first + 1, last - first - 1);
    head.version = line.substr(last + 1);
    const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
    if (!is_token(head.method) || head.target.empty() ||
        std::ranges::any_of(head.target, is_space)) {
        return refuse(400, "the request line is malformed. " + std::string(kUsage));
    }
    while (!text.empty()) {
        line = take_line(text);
        if (line.empty()) {
            break;
        }
        const std::size_t colon = line.find(':');
        // A folded line begins with a blank, which no token does.
        if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
            return refuse(400, "a header line is malformed");
        }
        head.fields.push_back({line.substr(0, colon), trim_blanks(line.substr(colon + 1))});
    }
    return head;
}

// How long the body is, from fields that agree with each other or are refused.
std::optional<EgressFault> read_framing(const Head& head, EgressRequest& request) {
    const auto lengths = head.values("Content-Length");
    const auto codings = head.values("Transfer-Encoding");
    if (lengths.size() + codings.size() > 1) {
        return EgressFault{
            400, "more than one Content-Length or Transfer-Encoding: the body has no clear end"
        };
    }
    if (!codings.empty()) {
        if (!equal(codings.front(), "chunked")) {
            return EgressFault{501, "the only Transfer-Encoding known here is chunked"};
        }
        if (head.version != "HTTP/1.1") {
            return EgressFault{400, "Transfer-Encoding needs HTTP/1.1"};
        }
        request.chunked = true;
    }
    if (!lengths.empty()) {
        const std::string_view digits = lengths.front();
        const char* const end = digits.data() + digits.size();
        const auto [stop, fault] = std::from_chars(digits.data(), end, request.content_length);
        if (fault != std::errc() || stop != end) {
            return EgressFault{400, "Content-Length is not a number"};
        }
    }
    return std::nullopt;
}

// Meant for this hop, or written anew by us.
bool is_ours(std::string_view name) {
    constexpr std::array<std::string_view, 12> kNames = {
        "Host",
        "Content-Length",
        "Transfer-Encoding",
        "Connection",
        "Proxy-Connection",
        "Keep-Alive",
        "Proxy-Authorization",
        "Proxy-Authenticate",
        "TE",
        "Trailer",
        "Upgrade",
        "HTTP2-Settings",
    };
    return std::ranges::any_of(kNames, [&](std::string_view known) { return equal(name, known); });
}

// Is `name` one of the words of the client's Connection fields?
bool is_of_this_hop(const Head& head, std::string_view name) {
    for (std::string_view list : head.values("Connection")) {
        while (!list.empty()) {
            const std::size_t comma = std::min(list.find(','), list.size());
            if (equal(trim_blanks(list.substr(0, comma)), name)) {
                return true;
            }
            list.remove_prefix(std::min(comma + 1, list.size()));
        }
    }
    return false;
}

std::string head_for_server(const Head& head, const EgressRequest& request, std::string_view path) {
    std::string out(head.method);
    out += ' ';
    out += path.starts_with('/') ? "" : "/";
    out += path;
    out += ' ';
    out += head.version;
    out += "\r\nHost: ";
    out += request.target.port == kHttpPort ? request.target.host.text() : request.target.text();
    out += "\r\n";
    for (const Field& field : head.fields) {
        if (!is_ours(field.name) && !is_of_this_hop(head, field.name)) {
            out += field.name;
            out += ": ";
            out += field.value;
            out += "\r\n";
        }
    }
    if (request.chunked) {
        out += "Transfer-Encoding: chunked\r\n";
    } else if (!head.values("Content-Length").empty()) {
        out += "Content-Length: " + std::to_string(request.content_length) + "\r\n";
    }
    out += "Connection: close\r\n\r\n";
    return out;
}

std::expected<EgressRequest, EgressFault> parse_tunnel(const Head& head, EgressRequest request) {
    auto target = parse_authority(head.target, std::nullopt);
    if (!target) {
        return refuse(403, target.error().message);
    }
    if (request.chunked || request.content_length != 0) {
        return refuse(400, "CONNECT has no body");
    }
    request.tunnel = true;
    request.target = std::move(*target);
    return request;
}

std::expected<EgressRequest, EgressFault> parse_plain(const Head& head, EgressRequest request) {
    std::string_view rest = head.target;
    if (!equal(rest.substr(0, kHttp.size()), kHttp)) {
        return refuse(
            400,
            (equal(rest.substr(0, 8), "https://") ? "https goes through CONNECT. "
                                                  : "the request names no host. ") +
                std::string(kUsage)
        );
    }
    rest.remove_prefix(kHttp.size());
    if (rest.find('#') != std::string_view::npos) {
        return refuse(400, "a fragment (#) is never sent");
    }
    const std::size_t end = std::min(rest.find_first_of("/?"), rest.size());
    auto target = parse_authority(rest.substr(0, end), kHttpPort);
    if (!target) {
        return refuse(403, target.error().message);
    }
    request.target = std::move(*target);
    request.head = head_for_server(head, request, rest.substr(end));
    return request;
}

}  // namespace

HeadScanner::State HeadScanner::scan(std::string_view bytes) {
    if (!bytes.empty() && !is_alpha(bytes.front())) {
        return State::malformed;  // TLS or another protocol: not a head that never ends
    }
    while (seen_ < bytes.size()) {
        if (seen_ == base::limits::kEgressHeadBytes) {
            return State::too_large;
        }
        const char c = bytes[seen_++];
        const bool control = (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
        if (after_cr_ != (c == '\n') || (control && c != '\r' && c != '\n')) {
            return State::malformed;
        }
        after_cr_ = c == '\r';
        if (c == '\n') {
            if (line_bytes_ == 0) {
                return State::complete;
            }
            line_bytes_ = 0;
        } else if (c != '\r') {
            ++line_bytes_;
        }
    }
    return State::more;
}

std::expected<EgressRequest, EgressFault> parse_egress_request(std::string_view text) {
    const auto head = split(text);
    if (!head) {
        return std::unexpected(head.error());
    }
    if (head->version != "HTTP/1.1" && head->version != "HTTP/1.0") {
        return refuse(505, "HTTP/1.1 and HTTP/1.0 are known here");
    }
    if (head->values("Host").size() > 1) {
        return refuse(400, "more than one Host");
    }
    EgressRequest request;
    if (auto fault = read_framing(*head, request)) {
        return std::unexpected(std::move(*fault));
    }
    if (head->method == "CONNECT") {
        return parse_tunnel(*head, std::move(request));
    }
    if (equal(head->method, "TRACE") || equal(head->method, "CONNECT")) {
        return refuse(405, "this method is not passed on");
    }
    return parse_plain(*head, std::move(request));
}

std::string closing_head(std::string_view head) {
    const std::size_t line = head.find('\n') + 1;
    std::string out(head.substr(0, line));
    out += "Connection: close\r\n";
    out += head.substr(line);
    return out;
}

std::size_t answer_head_end(std::string_view bytes, std::size_t looked_at) {
    // The empty line may begin in the last two bytes that were looked at.
    for (std::size_t at = bytes.find('\n', looked_at - std::min<std::size_t>(looked_at, 2));
         at != std::string_view::npos;
         at = bytes.find('\n', at + 1)) {
        const std::string_view next = bytes.substr(at + 1);
        if (next.starts_with('\n')) {
            return at + 2;
        }
        if (next.starts_with("\r\n")) {
            return at + 3;
        }
    }
    return std::string_view::npos;
}

bool is_interim_answer(std::string_view head) {
    const std::size_t space = head.find(' ');
    const std::string_view code = space == std::string_view::npos ? "" : head.substr(space + 1, 3);
    return code.starts_with('1') && code != "101";
}

}  // namespace ars::sandbox
