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

std::string_view HeadTail::tail() const {
    const std::string_view tail = tail_;
    return tail.substr(tail.size() - std::min(tail.size(), limit_ - limit_ / 2));
}

std::string HeadTail::bytes() const { return head_ + std::string(tail()); }

HeadTail::Text HeadTail::finish(std::string_view full_text_path, bool more_may_come) const {
    if (total_ <= limit_) {
        std::string all = head_ + tail_;
        if (more_may_come) {
            all.resize(all.size() - unfinished_bytes(all));
        }
        auto clean = base::to_utf8(all);
        return {std::move(clean.text), clean.lossy, 0};
    }
    std::string_view head = head_;
    head.remove_suffix(unfinished_bytes(head));
    std::string_view tail = this->tail();
    for (std::size_t i = 1; i < kLongestCharacter && !tail.empty() && is_continuation(tail[0]);
         ++i) {
        tail.remove_prefix(1);
    }
    if (more_may_come) {
        tail.remove_suffix(unfinished_bytes(tail));
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

void OutputWindow::append(std::string_view bytes) {
    if (limit_ == 0) {
        return;
    }
    total_ += bytes.size();
    if (bytes.size() >= limit_) {
        bytes_.assign(bytes.substr(bytes.size() - limit_));
        return;
    }
    bytes_.append(bytes);
    // Cut seldom, so that a byte is moved once on average.
    if (bytes_.size() > 2 * limit_) {
        bytes_.erase(0, bytes_.size() - limit_);
    }
}

OutputPage OutputWindow::read(std::uint64_t offset, std::size_t max_bytes) const {
    const std::uint64_t oldest = total_ - bytes_.size();
    OutputPage page;
    page.total = total_;
    page.offset = std::clamp(offset, oldest, total_);
    page.dropped = page.offset > offset ? page.offset - offset : 0;
    std::string_view rest = std::string_view(bytes_).substr(page.offset - oldest);
    if (rest.size() > max_bytes) {
        rest = rest.substr(0, max_bytes);
        // A page never stands still, whatever it holds.
        const std::size_t cut = unfinished_bytes(rest);
        rest.remove_suffix(cut < rest.size() ? cut : 0);
    }
    page.bytes = rest;
    page.next_offset = page.offset + rest.size();
    return page;
}

OutputCapture::OutputCapture(
    std::size_t head_tail,
    std::size_t window,
    std::shared_ptr<base::Fd> log,
    std::string log_guest_path
)
    : out_(head_tail),
      err_(head_tail),
      merged_(head_tail),
      window_(window),
      log_(std::move(log)),
      log_guest_path_(std::move(log_guest_path)) {}

void OutputCapture::append_merged(std::string_view bytes) {
    merged_.append(bytes);
    window_.append(bytes);
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

void OutputCapture::end() {
    for (std::string& carried : unfinished_) {
        append_merged(carried);
        carried.clear();
    }
    ended_ = true;
}

void OutputCapture::describe(Outcome& outcome) const {
    const std::string_view path = log_ ? std::string_view(log_guest_path_) : std::string_view();
    auto out = out_.finish(path, !ended_);
    auto err = err_.finish(path, !ended_);
    auto merged = merged_.finish(path, !ended_);
    outcome.lossy = out.lossy || err.lossy;
    outcome.omitted_bytes = out.omitted + err.omitted;
    if (outcome.omitted_bytes != 0 || merged.omitted != 0) {
        outcome.log_path = path;
    }
    outcome.out = std::move(out.text);
    outcome.err = std::move(err.text);
    outcome.merged = std::move(merged.text);
    if (outcome.raw) {
        outcome.raw_out = out_.bytes();
        outcome.raw_err = err_.bytes();
    }
}

void OutputCapture::forget() {
    out_ = err_ = merged_ = HeadTail(0);
    log_.reset();
}

}  // namespace ars::sandbox
