#include "runtime/models/sse_parser.hpp"

#include <utility>

namespace ars::models {

void SseParser::feed(std::string_view bytes) {
    if (overflowed_) {
        return;
    }
    if (read_ > 0) {
        buffer_.erase(0, read_);
        scanned_ -= read_;
        read_ = 0;
    }
    buffer_ += bytes;
}

std::optional<std::string_view> SseParser::take_line() {
    if (skip_lf_ && read_ < buffer_.size()) {
        read_ += buffer_[read_] == '\n' ? 1 : 0;
        scanned_ = read_;
        skip_lf_ = false;
    }
    const std::size_t end = buffer_.find_first_of("\r\n", scanned_);
    if (end == std::string::npos) {
        scanned_ = buffer_.size();
        if (!finished_ || read_ == buffer_.size()) {
            return std::nullopt;
        }
        const std::string_view rest = std::string_view(buffer_).substr(read_);
        read_ = buffer_.size();
        return rest;
    }
    const std::string_view line = std::string_view(buffer_).substr(read_, end - read_);
    skip_lf_ = buffer_[end] == '\r';
    read_ = end + 1;
    scanned_ = read_;
    return line;
}

void SseParser::take_field(std::string_view line) {
    const std::size_t colon = line.find(':');
    const std::string_view name = line.substr(0, colon);
    std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
    if (value.starts_with(' ')) {
        value.remove_prefix(1);
    }
    if (name == "data") {
        if (has_data_) {
            data_ += '\n';
        }
        data_ += value;
        has_data_ = true;
    } else if (name == "event") {
        type_ = value;
    }
    // A comment has an empty name; `id` and `retry` mean nothing where nobody reconnects.
}

std::optional<SseEvent> SseParser::next() {
    while (!overflowed_) {
        const std::optional<std::string_view> whole = take_line();
        const std::size_t length = whole ? whole->size() : buffer_.size() - read_;
        if (length > max_event_bytes_) {
            overflowed_ = true;
            break;
        }
        std::string_view line = whole.value_or("");
        if (whole && std::exchange(first_line_, false) && line.starts_with("\xEF\xBB\xBF")) {
            line.remove_prefix(3);
        }
        if (!line.empty()) {
            take_field(line);
            overflowed_ = data_.size() > max_event_bytes_;
            continue;
        }
        if (!whole && !finished_) {
            return std::nullopt;
        }
        // An empty line, or the end of the stream, closes the event.
        given_type_ = std::exchange(type_, {});
        given_data_ = std::exchange(data_, {});
        if (std::exchange(has_data_, false)) {
            return SseEvent{given_type_, given_data_};
        }
        if (!whole) {
            return std::nullopt;
        }
    }
    return std::nullopt;
}

}  // namespace ars::models
