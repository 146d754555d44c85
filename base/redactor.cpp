#include "base/redactor.hpp"

#include "base/text.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

namespace ars::base {

namespace {

// Lines of values are looked for until there are this many forms; whole values always are.
constexpr std::size_t kForms = 1024;

std::uint64_t start_of(const char* text) {
    std::uint64_t start = 0;
    static_assert(sizeof(start) == kLeastSecretBytes);
    std::memcpy(&start, text, sizeof(start));
    return start;
}

template <std::size_t Bits>
std::size_t place_in_filter(std::uint64_t start) {
    static_assert((Bits & (Bits - 1)) == 0);
    return static_cast<std::size_t>((start * 0x9E3779B97F4A7C15U) >> 32U) & (Bits - 1);
}

// For each length of a matched part of `form`: what is still matched when the next byte does not
// fit. Many overlapping occurrences would make any simpler search quadratic.
std::vector<std::uint32_t> failures_of(std::string_view form) {
    std::vector<std::uint32_t> failures(form.size() + 1, 0);
    std::uint32_t matched = 0;
    for (std::size_t i = 1; i < form.size(); ++i) {
        while (matched > 0 && form[i] != form[matched]) {
            matched = failures[matched];
        }
        matched += form[i] == form[matched] ? 1U : 0U;
        failures[i + 1] = matched;
    }
    return failures;
}

// Calls found(begin) for each occurrence from `from` on, also those that overlap.
template <class Found>
void each_occurrence(
    std::string_view text, std::size_t from, std::string_view form, const Found& found
) {
    const std::vector<std::uint32_t> failures = failures_of(form);
    std::uint32_t matched = 0;
    for (std::size_t i = from; i < text.size(); ++i) {
        while (matched > 0 && (matched == form.size() || text[i] != form[matched])) {
            matched = failures[matched];
        }
        matched += text[i] == form[matched] ? 1U : 0U;
        if (matched == form.size()) {
            found(i + 1 - form.size());
        }
    }
}

}  // namespace

void Redactor::add(std::string_view name, std::string_view value) {
    const std::string_view whole = trim(value);
    add_form(name, whole);
    const std::string quoted = boost::json::serialize(boost::json::string(whole));
    add_form(name, std::string_view(quoted).substr(1, quoted.size() - 2));
    for (std::size_t at = 0; at < whole.size() && forms_.size() < kForms;) {
        const std::size_t end = std::min(whole.find('\n', at), whole.size());
        add_form(name, trim(whole.substr(at, end - at)));
        at = end + 1;
    }
}

void Redactor::add_form(std::string_view name, std::string_view text) {
    if (text.size() < kLeastSecretBytes ||
        std::ranges::find(forms_, text, &Form::text) != forms_.end()) {
        return;
    }
    const std::pair entry(start_of(text.data()), forms_.size());
    starts_.insert(std::ranges::upper_bound(starts_, entry), entry);
    filter_.set(place_in_filter<kFilterBits>(entry.first));
    forms_.push_back({std::string(name), std::string(text)});
}

std::vector<Redactor::Span> Redactor::find(std::string_view text) const {
    std::vector<Span> spans;
    std::vector<std::size_t> first;  // of each form: where its start was first seen
    for (std::size_t i = 0; !forms_.empty() && i + kLeastSecretBytes <= text.size(); ++i) {
        const std::uint64_t start = start_of(text.data() + i);
        if (!filter_.test(place_in_filter<kFilterBits>(start))) {
            continue;
        }
        auto it = std::ranges::lower_bound(starts_, std::pair(start, std::size_t{0}));
        first.resize(forms_.size(), std::string_view::npos);
        for (; it != starts_.end() && it->first == start; ++it) {
            if (first[it->second] != std::string_view::npos) {
                break;  // all that start so have theirs
            }
            first[it->second] = i;
        }
    }
    for (std::size_t n = 0; n < first.size(); ++n) {
        const Form& form = forms_[n];
        const std::size_t size = form.text.size();
        const std::size_t before = spans.size();
        const auto add = [&](std::size_t begin) {
            if (spans.size() > before && begin < spans.back().end) {
                spans.back().end = begin + size;
            } else {
                spans.push_back({begin, begin + size, size, &form});
            }
        };
        if (first[n] != std::string_view::npos) {
            each_occurrence(text, first[n], form.text, add);
        }
    }
    std::ranges::sort(spans, {}, [](const Span& span) {
        return std::tuple(span.begin, span.form);
    });
    return spans;
}

std::string Redactor::redact(std::string text) const {
    const std::vector<Span> spans = find(text);
    if (spans.empty()) {
        return text;
    }
    std::string out;
    std::size_t copied = 0;
    for (std::size_t i = 0; i < spans.size();) {
        Span whole = spans[i];
        for (++i; i < spans.size() && spans[i].begin < whole.end; ++i) {
            whole.end = std::max(whole.end, spans[i].end);
            if (spans[i].longest > whole.longest) {
                whole.longest = spans[i].longest;
                whole.form = spans[i].form;
            }
        }
        out.append(text, copied, whole.begin - copied);
        out += "[redacted:" + whole.form->name + "]";
        copied = whole.end;
    }
    return out.append(text, copied);
}

void Redactor::redact(boost::json::value& value) const {
    if (value.is_string()) {
        const std::string_view text = value.get_string();
        if (!find(text).empty()) {
            value = redact(std::string(text));
        }
    } else if (value.is_array()) {
        for (boost::json::value& item : value.get_array()) {
            redact(item);
        }
    } else if (value.is_object()) {
        redact(value.get_object());
    }
}

void Redactor::redact(boost::json::object& object) const {
    for (auto& entry : object) {
        redact(entry.value());
    }
}

}  // namespace ars::base
