#include "runtime/tools/file_search.hpp"

#include "runtime/tools/line_reader.hpp"
#include "runtime/tools/text_page.hpp"

#include <array>
#include <cstring>

#include <unistd.h>

namespace ars::tools {

namespace {

constexpr std::size_t kPieceBytes = 64 * 1024;
constexpr std::uint64_t kCheckEvery = 4 * 1024 * 1024;  // bytes between looks at the clock

// Not std::string_view::find: a text that almost matches everywhere would cost a piece times
// itself.
bool holds(std::string_view text, std::string_view pattern) {
    return ::memmem(text.data(), text.size(), pattern.data(), pattern.size()) != nullptr;
}

}  // namespace

FileSearch search_file(
    const base::Fd& file,
    std::string_view pattern,
    base::Deadline deadline,
    const std::function<bool(const FoundLine&)>& found
) {
    FileSearch result;
    std::array<char, kSniffBytes> first{};
    const ssize_t size = ::pread(file.get(), first.data(), first.size(), 0);
    if (size < 0) {
        result.complete = false;
        return result;
    }
    if (!binary_kind({first.data(), static_cast<std::size_t>(size)}).empty()) {
        result.binary = true;
        return result;
    }
    LineReader reader(file.get(), kPieceBytes);
    std::uint64_t number = 1;
    std::uint64_t next_check = kCheckEvery;
    bool line_found = false;
    std::string carried;  // end of the last piece: the text may lie across the border
    while (auto piece = reader.next()) {
        const std::string_view text = piece->text;
        bool here = !line_found && holds(text, pattern);
        if (!line_found && !here && !carried.empty()) {
            carried += text.substr(0, pattern.size());
            here = holds(carried, pattern);
        }
        if (here) {
            line_found = true;
            ++result.lines;
            if (!found({number, text})) {
                return result;
            }
        }
        carried.clear();
        if (piece->ends_line) {
            ++number;
            line_found = false;
        } else {
            carried = text.substr(text.size() - std::min(text.size(), pattern.size() - 1));
        }
        if (reader.bytes_consumed() >= next_check) {
            next_check = reader.bytes_consumed() + kCheckEvery;
            if (deadline.passed()) {
                result.complete = false;
                return result;
            }
        }
    }
    result.complete = reader.error() == 0;
    return result;
}

}  // namespace ars::tools
