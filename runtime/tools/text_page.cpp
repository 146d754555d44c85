#include "runtime/tools/text_page.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "runtime/tools/line_reader.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>

#include <unistd.h>

namespace ars::tools {

using base::ErrorKind;

namespace {

// Below the cap of a result, so that a page is never evicted to a file of its own.
constexpr std::size_t kPageBytes = base::limits::kToolResultBytes - 4 * base::limits::kKiB;

std::unexpected<base::Error> binary_error(
    const fsmount::OpenFile& file, const std::string& shown, const std::string& kind
) {
    return base::fail(
        ErrorKind::invalid,
        "binary_file",
        fmt::format(
            "{} is {} ({}), not text; read it with base64: true, or look at it with execute, for "
            "example: file, xxd, strings, python3",
            shown,
            kind,
            size_text(file)
        )
    );
}

std::unexpected<base::Error> not_utf8(const std::string& shown, std::uint64_t line) {
    return base::fail(
        ErrorKind::invalid,
        "decode_error",
        fmt::format(
            "{} is not UTF-8 text (line {}); convert a copy with execute, for example: iconv -f "
            "GBK -t "
            "UTF-8",
            shown,
            line
        )
    );
}

// Adds one line, cut into parts of kPageLineBytes at code points.
void append_line(std::string& out, std::uint64_t number, std::string_view line) {
    std::string_view part = base::utf8_head(line, kPageLineBytes);
    out += fmt::format("{:>6}\t{}\n", number, part);
    line.remove_prefix(part.size());
    for (int i = 1; !line.empty(); ++i) {
        part = base::utf8_head(line, kPageLineBytes);
        out += fmt::format("{:>6}\t{}\n", fmt::format("{}.{}", number, i), part);
        line.remove_prefix(part.size());
    }
}

class PageReader {
  public:
    PageReader(const fsmount::OpenFile& file, const PageRequest& request, const std::string& shown)
        : reader_(file.fd.get(), kPageBytes), file_(file), request_(request), shown_(shown) {}

    base::Result<TextPage> read() {
        if (auto skipped = skip(); !skipped) {
            return std::unexpected(skipped.error());
        }
        TextPage page;
        while (page.lines < request_.limit) {
            const auto piece = reader_.next();
            if (!piece) {
                break;
            }
            std::string_view line = piece->text;
            if (line.find('\0') != std::string_view::npos) {
                return binary_error(file_, shown_, "a file with NUL bytes");
            }
            if (!piece->ends_line) {
                line = whole_code_points(line);
            }
            if (!base::is_utf8(line)) {
                return not_utf8(shown_, number() + page.lines);
            }
            if (line.ends_with('\r')) {
                line.remove_suffix(1);
            }
            if (!add(page, line, piece->ends_line)) {
                return page;
            }
        }
        if (reader_.error() != 0) {
            return std::unexpected(fsmount::file_error(shown_, reader_.error()));
        }
        if (page.lines == 0) {
            return behind_the_end(request_.offset);
        }
        page.more = reader_.next().has_value();
        return page;
    }

  private:
    // False when the page is full.
    bool add(TextPage& page, std::string_view line, bool ends_line) const {
        const std::size_t before = page.text.size();
        append_line(page.text, number() + page.lines, line);
        const bool fits = page.text.size() <= kPageBytes;
        if (fits && ends_line) {
            ++page.lines;
            return true;
        }
        page.more = true;
        if (page.lines > 0) {
            page.text.resize(before);
            page.note = "the page is full";
            return false;
        }
        page.text = base::utf8_head(page.text, kPageBytes);
        page.text += '\n';
        page.lines = 1;
        page.note =
            fmt::format("line {} is longer than a page: the rest of it is left out", number());
        return false;
    }

    // A piece may end inside a code point: that is no fault of the file.
    static std::string_view whole_code_points(std::string_view text) {
        std::size_t end = text.size();
        while (end > 0 && text.size() - end < 3 &&
               (static_cast<unsigned char>(text[end - 1]) & 0xC0U) == 0x80U) {
            --end;
        }
        if (end > 0 && static_cast<unsigned char>(text[end - 1]) >= 0xC0U) {
            --end;
        }
        return base::is_utf8(text) ? text : text.substr(0, end);
    }

    [[nodiscard]] std::uint64_t number() const { return request_.offset + 1; }

    [[nodiscard]] std::unexpected<base::Error> behind_the_end(std::uint64_t lines) const {
        return base::fail(
            ErrorKind::invalid,
            "invalid_argument",
            fmt::format(
                "offset {} is behind the end: {} has {} lines", request_.offset, shown_, lines
            )
        );
    }

    base::Result<void> skip() {
        for (std::uint64_t line = 0; line < request_.offset;) {
            const auto piece = reader_.next();
            if (!piece) {
                if (reader_.error() != 0) {
                    return std::unexpected(fsmount::file_error(shown_, reader_.error()));
                }
                return behind_the_end(line);
            }
            line += piece->ends_line ? 1 : 0;
            if (reader_.bytes_consumed() > kPageScanBytes || request_.deadline.passed()) {
                return base::fail(
                    ErrorKind::too_large,
                    "file_too_large",
                    fmt::format(
                        "line {} of {} was not reached within {} bytes; use execute, for example: "
                        "sed -n "
                        "'{},+100p'",
                        number(),
                        shown_,
                        reader_.bytes_consumed(),
                        number()
                    )
                );
            }
        }
        return {};
    }

    LineReader reader_;
    const fsmount::OpenFile& file_;
    const PageRequest& request_;
    const std::string& shown_;
};

}  // namespace

std::string size_text(const fsmount::OpenFile& file) {
    std::string text = fmt::format("{} bytes", file.info.size);
    if (file.info.stored_bytes < file.info.size / 2) {
        text += fmt::format(", sparse: {} stored", file.info.stored_bytes);
    }
    return text;
}

std::string binary_kind(std::string_view first_bytes) {
    struct Magic {
        std::string_view bytes;
        const char* kind;
    };
    static constexpr std::array<Magic, 9> kMagics = {{
        {"\x89PNG\r\n", "a PNG image"},
        {"\xff\xd8\xff", "a JPEG image"},
        {"GIF87a", "a GIF image"},
        {"GIF89a", "a GIF image"},
        {"%PDF-", "a PDF document"},
        {"PK\x03\x04", "a ZIP archive or Office document"},
        {"\x1f\x8b", "a gzip archive"},
        {"\x7f"
         "ELF",
         "a program"},
        {"\xd0\xcf\x11\xe0", "an Office document"},
    }};
    for (const Magic& magic : kMagics) {
        if (first_bytes.starts_with(magic.bytes)) {
            return magic.kind;
        }
    }
    return first_bytes.find('\0') == std::string_view::npos ? "" : "a binary file";
}

base::Result<TextPage> read_page(
    const fsmount::OpenFile& file, const PageRequest& request, const std::string& shown
) {
    std::array<char, kSniffBytes> first{};
    const ssize_t size = ::pread(file.fd.get(), first.data(), first.size(), 0);
    if (size < 0) {
        return std::unexpected(fsmount::file_error(shown, errno));
    }
    const std::string kind = binary_kind({first.data(), static_cast<std::size_t>(size)});
    if (!kind.empty()) {
        return binary_error(file, shown, kind);
    }
    return PageReader(file, request, shown).read();
}

}  // namespace ars::tools
