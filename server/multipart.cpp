#include "server/multipart.hpp"

#include "base/limits.hpp"

#include <algorithm>

namespace ars::server {

namespace {

constexpr std::size_t kBoundaryBytes = 70;                  // RFC 2046
constexpr std::size_t kLineBytes = 4 * base::limits::kKiB;  // one header of a part
constexpr int kHeaders = 16;                                // of one part

base::Error malformed(std::string_view why) {
    return {
        base::ErrorKind::invalid,
        "bad_multipart",
        "the body is not well-formed multipart/form-data: " + std::string(why)
    };
}

std::string_view trim(std::string_view text) {
    while (text.starts_with(' ') || text.starts_with('\t')) {
        text.remove_prefix(1);
    }
    while (text.ends_with(' ') || text.ends_with('\t')) {
        text.remove_suffix(1);
    }
    return text;
}

// The parameter `name` of "type; a=b; c=\"d\"". In quotes, a backslash stands before a quote or
// another backslash only: browsers and older clients write paths with single ones.
std::optional<std::string> parameter(std::string_view header, std::string_view name) {
    std::size_t at = header.find(';');
    while (at < header.size()) {
        ++at;
        const std::size_t equals = header.find_first_of("=;", at);
        if (equals == std::string_view::npos || header[equals] == ';') {
            at = equals;
            continue;
        }
        const std::string_view key = trim(header.substr(at, equals - at));
        at = equals + 1;
        std::string value;
        if (at < header.size() && header[at] == '"') {
            for (++at; at < header.size() && header[at] != '"'; ++at) {
                const bool escape = header[at] == '\\' && at + 1 < header.size() &&
                                    (header[at + 1] == '"' || header[at + 1] == '\\');
                at += escape ? 1U : 0U;
                value += header[at];
            }
            at = header.find(';', at);
        } else {
            const std::size_t end = std::min(header.find(';', at), header.size());
            value = trim(header.substr(at, end - at));
            at = end;
        }
        if (equal_ignoring_case(key, name)) {
            return value;
        }
    }
    return std::nullopt;
}

}  // namespace

std::optional<std::string> multipart_boundary(std::string_view content_type) {
    const std::string_view type = trim(content_type.substr(0, content_type.find(';')));
    auto boundary = parameter(content_type, "boundary");
    const bool good = equal_ignoring_case(type, "multipart/form-data") && boundary &&
                      !boundary->empty() && boundary->size() <= kBoundaryBytes;
    return good ? boundary : std::nullopt;
}

// The first delimiter has no line before it: one is put there.
MultipartReader::MultipartReader(HttpPeer& peer, std::string_view boundary)
    : peer_(peer), delimiter_("\r\n--" + std::string(boundary)), buffer_("\r\n") {
    part_over_ = false;
}

// Appends what comes next. False at the end of the body.
base::Task<base::Result<bool>> MultipartReader::fill() {
    buffer_.erase(0, at_);
    at_ = 0;
    const auto piece = co_await peer_.read_body();
    if (!piece) {
        co_return std::unexpected(piece.error());
    }
    buffer_ += *piece;
    co_return !piece->empty();
}

base::Task<base::Result<std::string_view>> MultipartReader::read() {
    while (!part_over_) {
        const std::string_view rest = std::string_view(buffer_).substr(at_);
        const std::size_t found = rest.find(delimiter_);
        if (found == 0) {
            at_ += delimiter_.size();
            part_over_ = true;
            break;
        }
        // Without a delimiter in sight, the end of what came may be the begin of one.
        const std::size_t safe = found != std::string_view::npos ? found
                                 : rest.size() >= delimiter_.size()
                                     ? rest.size() - delimiter_.size() + 1
                                     : 0;
        if (safe > 0) {
            at_ += safe;
            co_return rest.substr(0, safe);
        }
        const auto more = co_await fill();
        if (!more) {
            co_return std::unexpected(more.error());
        }
        if (!*more) {
            co_return std::unexpected(malformed("it ends without its last boundary"));
        }
    }
    co_return std::string_view();
}

base::Task<base::Result<std::string>> MultipartReader::read_whole(std::size_t most) {
    std::string out;
    for (;;) {
        const auto piece = co_await read();
        if (!piece) {
            co_return std::unexpected(piece.error());
        }
        if (piece->empty()) {
            co_return out;
        }
        if (out.size() + piece->size() > most) {
            co_return base::fail(
                base::ErrorKind::too_large,
                "field_too_large",
                "a field of the form is over " + std::to_string(most) + " bytes"
            );
        }
        out += *piece;
    }
}

// The next line without its end; valid until the next call.
base::Task<base::Result<std::string_view>> MultipartReader::line() {
    for (;;) {
        const std::string_view rest = std::string_view(buffer_).substr(at_);
        const std::size_t end = rest.find("\r\n");
        if (end != std::string_view::npos && end <= kLineBytes) {
            at_ += end + 2;
            co_return rest.substr(0, end);
        }
        if (rest.size() > kLineBytes) {
            co_return std::unexpected(malformed("a header of a part is too long"));
        }
        const auto more = co_await fill();
        if (!more) {
            co_return std::unexpected(more.error());
        }
        if (!*more) {
            co_return std::unexpected(malformed("it ends inside the headers of a part"));
        }
    }
}

base::Task<base::Result<std::optional<FormPart>>> MultipartReader::next_part() {
    while (!part_over_) {
        if (const auto skipped = co_await read(); !skipped) {
            co_return std::unexpected(skipped.error());
        }
    }
    // "--" after the last delimiter, which the end of the body may follow at once.
    while (!over_ && buffer_.size() - at_ < 2) {
        const auto more = co_await fill();
        if (!more) {
            co_return std::unexpected(more.error());
        }
        if (!*more) {
            co_return std::unexpected(malformed("it ends without its last boundary"));
        }
    }
    over_ = over_ || std::string_view(buffer_).substr(at_, 2) == "--";
    if (over_) {
        co_return std::optional<FormPart>();
    }
    auto text = co_await line();
    if (text && !trim(*text).empty()) {
        co_return std::unexpected(malformed("something follows a boundary on its line"));
    }
    FormPart part;
    bool named = false;
    for (int i = 0; text; ++i) {
        text = co_await line();
        if (!text || text->empty()) {
            break;
        }
        const std::size_t colon = text->find(':');
        if (colon == std::string_view::npos || i == kHeaders) {
            co_return std::unexpected(malformed("a part has a broken header, or too many"));
        }
        if (equal_ignoring_case(text->substr(0, colon), "content-disposition")) {
            const std::string_view value = text->substr(colon + 1);
            part.name = parameter(value, "name").value_or("");
            part.filename = parameter(value, "filename");
            named = equal_ignoring_case(trim(value.substr(0, value.find(';'))), "form-data");
        }
    }
    if (!text) {
        co_return std::unexpected(text.error());
    }
    if (!named) {
        co_return std::unexpected(malformed("a part has no Content-Disposition: form-data"));
    }
    part_over_ = false;
    co_return part;
}

}  // namespace ars::server
