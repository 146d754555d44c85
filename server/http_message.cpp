#include "server/http_message.hpp"

#include <charconv>
#include <ctime>

namespace ars::server {

namespace {

constexpr std::size_t kKeptBody = 16 * 1024;  // capacity that an idle connection may keep

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

int hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    const char letter = lower(c);
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

std::string_view reason_of(int status) {
    switch (status) {
        case 200:
            return "OK";
        case 201:
            return "Created";
        case 202:
            return "Accepted";
        case 204:
            return "No Content";
        case 400:
            return "Bad Request";
        case 401:
            return "Unauthorized";
        case 403:
            return "Forbidden";
        case 404:
            return "Not Found";
        case 405:
            return "Method Not Allowed";
        case 408:
            return "Request Timeout";
        case 409:
            return "Conflict";
        case 412:
            return "Precondition Failed";
        case 413:
            return "Content Too Large";
        case 415:
            return "Unsupported Media Type";
        case 417:
            return "Expectation Failed";
        case 422:
            return "Unprocessable Content";
        case 429:
            return "Too Many Requests";
        case 431:
            return "Request Header Fields Too Large";
        case 500:
            return "Internal Server Error";
        case 501:
            return "Not Implemented";
        case 503:
            return "Service Unavailable";
        case 504:
            return "Gateway Timeout";
        case 507:
            return "Insufficient Storage";
        default:
            return "Status";
    }
}

void append_number(std::string& out, std::size_t value) {
    char digits[20];
    const auto end = std::to_chars(std::begin(digits), std::end(digits), value).ptr;
    out.append(digits, end);
}

// "Date: Tue, 14 Nov 2023 22:13:20 GMT\r\n", made once a second. Names are spelled here, because
// strftime's depend on the locale.
const std::string& date_line() {
    static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static constexpr const char* kMonths[] = {
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"
    };
    thread_local std::time_t made_at = -1;
    thread_local std::string line;
    const std::time_t now = std::time(nullptr);
    if (now != made_at) {
        std::tm utc{};
        ::gmtime_r(&now, &utc);
        char text[64];
        const std::size_t size = std::strftime(text, sizeof text, "%d %%s %Y %H:%M:%S GMT", &utc);
        std::string_view rest(text, size);
        const std::size_t month = rest.find("%s");
        line = "Date: ";
        line += kDays[utc.tm_wday];
        line += ", ";
        line += rest.substr(0, month);
        line += kMonths[utc.tm_mon];
        line += rest.substr(month + 2);
        line += "\r\n";
        made_at = now;
    }
    return line;
}

}  // namespace

std::string_view to_string(Method method) {
    switch (method) {
        case Method::get:
            return "GET";
        case Method::head:
            return "HEAD";
        case Method::post:
            return "POST";
        case Method::put:
            return "PUT";
        case Method::patch:
            return "PATCH";
        case Method::del:
            return "DELETE";
        case Method::options:
            return "OPTIONS";
        case Method::other:
            break;
    }
    return "OTHER";
}

void HttpRequest::clear() {
    method = Method::get;
    http_1_1 = true;
    keep_alive = true;
    body.clear();
    if (body.capacity() > kKeptBody) {
        body = std::string();
    }
    peer = nullptr;
    route = nullptr;
    params.clear();
    user = {};
    key_name.clear();
    key_uid.clear();
    head_.clear();
    target_ = {};
    headers_.clear();
}

void HttpRequest::start(Method verb, std::string_view target, bool version_1_1) {
    method = verb;
    http_1_1 = version_1_1;
    target_ = keep(target);
}

void HttpRequest::add_header(std::string_view name, std::string_view value) {
    const Slice kept_name = keep(name);
    headers_.push_back({kept_name, keep(value)});
}

HttpRequest::Slice HttpRequest::keep(std::string_view bytes) {
    const Slice slice{
        static_cast<std::uint32_t>(head_.size()), static_cast<std::uint32_t>(bytes.size())
    };
    head_ += bytes;
    return slice;
}

std::string_view HttpRequest::path() const {
    std::string_view path = target();
    if (!path.starts_with('/')) {
        const std::size_t scheme = path.find("://");
        if (scheme == std::string_view::npos) {
            return path;
        }
        const std::size_t slash = path.find('/', scheme + 3);
        path = slash == std::string_view::npos ? std::string_view("/") : path.substr(slash);
    }
    return path.substr(0, path.find_first_of("?#"));
}

std::string_view HttpRequest::raw_query() const {
    const std::string_view whole = target();
    const std::size_t mark = whole.find('?');
    if (mark == std::string_view::npos) {
        return {};
    }
    const std::string_view query = whole.substr(mark + 1);
    return query.substr(0, query.find('#'));
}

std::optional<std::string> HttpRequest::query(std::string_view name) const {
    std::string_view rest = raw_query();
    while (!rest.empty()) {
        const std::string_view part = rest.substr(0, rest.find('&'));
        rest.remove_prefix(std::min(part.size() + 1, rest.size()));
        const std::size_t equals = std::min(part.find('='), part.size());
        const auto key = percent_decode(part.substr(0, equals), true);
        if (key && *key == name) {
            return percent_decode(part.substr(std::min(equals + 1, part.size())), true);
        }
    }
    return std::nullopt;
}

std::optional<std::string_view> HttpRequest::header(std::string_view name) const {
    for (const Header& header : headers_) {
        if (equal_ignoring_case(text(header.name), name)) {
            return text(header.value);
        }
    }
    return std::nullopt;
}

std::size_t HttpRequest::count_headers(std::string_view name) const {
    std::size_t count = 0;
    for (const Header& header : headers_) {
        count += equal_ignoring_case(text(header.name), name) ? 1U : 0U;
    }
    return count;
}

std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '%') {
            if (i + 2 >= text.size()) {
                return std::nullopt;
            }
            const int high = hex_digit(text[i + 1]);
            const int low = hex_digit(text[i + 2]);
            if (high < 0 || low < 0) {
                return std::nullopt;
            }
            out += static_cast<char>(high * 16 + low);
            i += 2;
        } else {
            out += text[i] == '+' && plus_is_space ? ' ' : text[i];
        }
    }
    return out;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
    if (a.size() != b.size()) {
        return false;
    }
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (lower(a[i]) != lower(b[i])) {
            return false;
        }
    }
    return true;
}

void append_head(std::string& out, const HttpResponse& response, bool keep_alive, bool chunked) {
    out += "HTTP/1.1 ";
    append_number(out, static_cast<std::size_t>(response.status));
    out += ' ';
    out += reason_of(response.status);
    out += "\r\n";
    out += date_line();
    out += "Content-Type: ";
    out += response.content_type;
    if (chunked) {
        out += "\r\nTransfer-Encoding: chunked";
    } else if (!response.stream || response.stream_bytes) {
        out += "\r\nContent-Length: ";
        append_number(out, response.stream_bytes.value_or(response.body.size()));
    }
    out += "\r\n";
    for (const auto& [name, value] : response.headers) {
        out += name;
        out += ": ";
        out += value;
        out += "\r\n";
    }
    out += keep_alive ? "\r\n" : "Connection: close\r\n\r\n";
}

}  // namespace ars::server
