#include "sandbox/egress_body.hpp"

#include <algorithm>

namespace ars::sandbox {

namespace {

constexpr unsigned kSizeDigits = 15;      // a size that no arithmetic overflows
constexpr unsigned kIgnoredBytes = 4096;  // extensions and trailers of one body

int hex_value(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool is_control(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; }

}  // namespace

bool ChunkedReader::take_size(char c) {
    if (const int value = hex_value(c); value >= 0) {
        left_ = left_ * 16 + static_cast<unsigned>(value);
        return ++digits_ <= kSizeDigits;
    }
    if (digits_ == 0 || (c != ';' && c != '\r')) {
        return false;
    }
    at_ = c == ';' ? At::extension : At::size_end;
    return true;
}

bool ChunkedReader::take_trailer(char c) {
    if (after_cr_ != (c == '\n')) {
        return false;
    }
    after_cr_ = c == '\r';
    if (c == '\n') {
        at_ = line_bytes_ == 0 ? At::done : At::trailer;
        line_bytes_ = 0;
        return true;
    }
    if (c == '\r') {
        return true;
    }
    ++line_bytes_;
    return !is_control(c) && ++ignored_ <= kIgnoredBytes;
}

bool ChunkedReader::take(char c) {
    switch (at_) {
        case At::size:
            return take_size(c);
        case At::extension:
            if (c == '\r') {
                at_ = At::size_end;
                return true;
            }
            return !is_control(c) && ++ignored_ <= kIgnoredBytes;
        case At::size_end:
            at_ = left_ == 0 ? At::trailer : At::data;
            return c == '\n';
        case At::data_cr:
            at_ = At::data_end;
            return c == '\r';
        case At::data_end:
            at_ = At::size;
            digits_ = 0;
            return c == '\n';
        case At::trailer:
            return take_trailer(c);
        case At::data:
        case At::done:
            break;
    }
    return false;
}

ChunkedReader::State ChunkedReader::next(std::string_view& in, std::string_view& data) {
    data = {};
    while (!in.empty() && at_ != At::done) {
        if (at_ == At::data) {
            data =
                in.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(left_, in.size())));
            in.remove_prefix(data.size());
            left_ -= data.size();
            if (left_ == 0) {
                at_ = At::data_cr;
            }
            return State::more;
        }
        const char c = in.front();
        in.remove_prefix(1);
        if (!take(c)) {
            return State::malformed;
        }
    }
    return at_ == At::done ? State::done : State::more;
}

}  // namespace ars::sandbox
