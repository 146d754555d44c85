#include "sandbox/output_capture.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"

#include <algorithm>

namespace ars::sandbox {

namespace {

constexpr std::size_t kLongestCharacter = 4;

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

std::size_t expected_length(char lead) {
    const auto byte = static_cast<unsigned char>(lead);
    if (byte >= 0xF0) {
        return 4;
    }
    if (byte >= 0xE0) {
        return 3;
    }
    return byte >= 0xC0 ? 2 : 1;
}

// How many bytes at the end of `bytes` are the start of a character that is not complete.
std::size_t unfinished_bytes(std::string_view bytes) {
    const std::size_t most = std::min(bytes.size(), kLongestCharacter - 1);
    for (std::size_t back = 1; back <= most; ++back) {
        const char c = bytes[bytes.size() - back];
        if (!is_continuation(c)) {
            return expected_length(c) > back ? back : 0;
        }
    }
    return 0;
}

}  // namespace

void HeadTail::append(std::string_view bytes) {
    total_ += bytes.size();
    const std::size_t head_limit = limit_ / 2;
    if (head_.size() < head_limit) {
        const std::size_t taken = std::min(head_limit - head_.size(), bytes.size());
        head_.append(bytes.substr(0, taken));
        bytes.remove_prefix(taken);
    }
    const std::size_t tail_limit = limit_ - head_limit;
    if (bytes.size() >= tail_limit) {
        tail_.assign(bytes.substr(bytes.size() - tail_limit));
        return;
    }
    tail_.append(bytes);
    // Cut seldom, so that a byte is moved once on average.
    if (tail_.size() > 2 * tail_limit) {
        tail_.erase(0, tail_.size() - tail_limit);
    }
}

HeadTail::Text HeadTail::finish(std::string_view full_text_path) const {
    const std::size_t tail_limit = limit_ - limit_ / 2;
    if (total_ <= limit_) {
        auto clean = base::to_utf8(head_ + tail_);
        return {std::move(clean.text), clean.lossy, 0};
    }
    std::string_view head = head_;
    head.remove_suffix(unfinished_bytes(head));
    std::string_view tail = tail_;
    tail.remove_prefix(tail.size() - std::min(tail.size(), tail_limit));
    for (std::size_t i = 1; i < kLongestCharacter && !tail.empty() && is_continuation(tail[0]);
         ++i) {
        tail.remove_prefix(1);
    }
    auto clean_head = base::to_utf8(head);
    auto clean_tail = base::to_utf8(tail);
    Text result;
    result.omitted = total_ - head.size() - tail.size();
    result.lossy = clean_head.lossy || clean_tail.lossy;
    result.text = std::move(clean_head.text);
    result.text += "\n[... " + std::to_string(result.omitted) + " bytes omitted";
    if (!full_text_path.empty()) {
        result.text += "; full text: ";
        result.text += full_text_path;
    }
    result.text += " ...]\n";
    result.text += clean_tail.text;
    return result;
}

OutputCapture::OutputCapture(
    std::size_t limit, std::shared_ptr<base::Fd> log, std::string log_guest_path
)
    : out_(limit),
      err_(limit),
      merged_(limit),
      log_(std::move(log)),
      log_guest_path_(std::move(log_guest_path)) {}

void OutputCapture::append_merged(std::string_view bytes) {
    merged_.append(bytes);
    if (!log_ || !*log_ || logged_ >= base::limits::kCommandLogBytes) {
        return;
    }
    const std::string_view part = bytes.substr(0, base::limits::kCommandLogBytes - logged_);
    if (base::write_all(log_->get(), part)) {
        logged_ += part.size();
    } else {
        log_.reset();  // a full disk costs the log, not the command
    }
}

void OutputCapture::append(int stream, std::string_view bytes) {
    (stream == 1 ? out_ : err_).append(bytes);
    std::string& carried = unfinished_[stream == 1 ? 0 : 1];
    std::string joined;
    if (!carried.empty()) {
        joined = std::move(carried);
        joined += bytes;
        bytes = joined;
        carried.clear();
    }
    const std::size_t rest = unfinished_bytes(bytes);
    append_merged(bytes.substr(0, bytes.size() - rest));
    carried = std::string(bytes.substr(bytes.size() - rest));
}

void OutputCapture::finish(Outcome& outcome) {
    for (std::string& carried : unfinished_) {
        append_merged(carried);
        carried.clear();
    }
    const std::string_view path = log_ ? std::string_view(log_guest_path_) : std::string_view();
    auto out = out_.finish(path);
    auto err = err_.finish(path);
    auto merged = merged_.finish(path);
    outcome.lossy = out.lossy || err.lossy;
    outcome.omitted_bytes = out.omitted + err.omitted;
    if (outcome.omitted_bytes != 0 || merged.omitted != 0) {
        outcome.log_path = path;
    }
    outcome.out = std::move(out.text);
    outcome.err = std::move(err.text);
    outcome.merged = std::move(merged.text);
}

}  // namespace ars::sandbox
