#include "runtime/models/call_failure.hpp"

#include "base/limits.hpp"
#include "base/text.hpp"
#include "runtime/models/json_text.hpp"

#include <boost/json/serialize.hpp>

#include <array>
#include <charconv>
#include <ctime>
#include <string>

namespace ars::models {

namespace {

namespace json = boost::json;
using base::ErrorKind;
using std::chrono::milliseconds;

constexpr std::int64_t kLongestWaitMs = 24LL * 3600 * 1000;  // anything longer means "never"

// What can be found out about an error, whatever its form.
struct Facts {
    int status = 0;       // HTTP-like, 0 when unknown
    std::string marks;    // code, type and status words, in lower case
    std::string message;  // for people
};

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out) {
        c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    return out;
}

template <std::size_t N>
bool has_any(std::string_view text, const std::array<std::string_view, N>& words) {
    for (const std::string_view word : words) {
        if (text.find(word) != std::string_view::npos) {
            return true;
        }
    }
    return false;
}

void take_mark(const json::value& value, Facts& facts) {
    int number = 0;
    if (value.is_int64()) {
        number = static_cast<int>(value.get_int64());
    } else if (value.is_string()) {
        const std::string_view text = value.get_string();
        std::from_chars(text.data(), text.data() + text.size(), number);
        facts.marks += lower(text) + " ";
    }
    if (number >= 400 && number <= 599) {
        facts.status = number;
    }
}

// `error` may hold another `error` (a whole body), be an array (Gemini), or plain text.
void take_error(const json::value& error, Facts& facts, int depth = 0) {
    if (error.is_string()) {
        facts.message = error.get_string();
    } else if (error.is_array() && !error.get_array().empty() && depth < 4) {
        take_error(error.get_array().front(), facts, depth + 1);
    } else if (error.is_object()) {
        const json::object& object = error.get_object();
        for (const std::string_view key : {"code", "type", "status", "status_code"}) {
            if (const json::value* mark = object.if_contains(key)) {
                take_mark(*mark, facts);
            }
        }
        for (const std::string_view key : {"detail", "message", "error"}) {
            const json::value* inner = object.if_contains(key);
            if (inner != nullptr && !inner->is_null() && depth < 4) {
                take_error(*inner, facts, depth + 1);
            }
        }
    }
}

bool means_overflow(int status, std::string_view marks, std::string_view text) {
    constexpr std::array<std::string_view, 4> kPhrases = {
        "maximum context length", "context_length_exceeded", "prompt is too long", "context window"
    };
    const bool fits = status == 0 || status == 400 || status == 413 || status == 422;
    return marks.find("context_length_exceeded") != std::string_view::npos ||
           (fits && has_any(lower(text), kPhrases));
}

bool means_no_money(std::string_view marks, std::string_view text) {
    constexpr std::array<std::string_view, 4> kWords = {
        "insufficient_quota", "billing_hard_limit", "billing_not_active", "insufficient_balance"
    };
    return has_any(marks, kWords) || has_any(lower(text), kWords);
}

// A status for an error that came without one, out of its code and type.
int status_of(std::string_view marks) {
    constexpr std::array<std::string_view, 3> kRate = {
        "rate_limit", "ratelimit", "resource_exhausted"
    };
    constexpr std::array<std::string_view, 8> kFinal = {
        "invalid_request",
        "invalid_argument",
        "authentication",
        "permission",
        "not_found",
        "invalid_api_key",
        "unauthenticated",
        "content_filter"
    };
    if (has_any(marks, kRate)) {
        return 429;
    }
    return has_any(marks, kFinal) ? 400 : 500;
}

CallFailure classify(
    int status, std::string_view marks, std::string_view text, std::string message
) {
    CallFailure out;
    out.error.message = std::move(message);
    if (means_overflow(status, marks, text)) {
        out.error.kind = ErrorKind::too_large;
        out.error.code = "model_context_overflow";
        return out;
    }
    if (status == 0) {
        status = status_of(marks);
    }
    const bool no_money = means_no_money(marks, text);
    if (status == 429 && !no_money) {
        out.error.kind = ErrorKind::exhausted;
        out.error.code = "model_rate_limited";
        out.retryable = true;
    } else if ((status >= 500 || status == 408 || status == 409) && !no_money) {
        out.error.kind = ErrorKind::unavailable;
        out.error.code = "model_unavailable";
        out.retryable = true;
    } else {
        out.error.kind = ErrorKind::invalid;
        out.error.code = "model_rejected";
    }
    if (out.retryable) {
        out.retry_after = retry_hint_in(text);
    }
    return out;
}

std::string excerpt(std::string_view body) {
    const std::string clean = base::to_utf8(base::trim(body)).text;
    return std::string(base::utf8_head(clean, base::limits::kModelErrorBodyBytes));
}

std::optional<milliseconds> bounded(double ms) {
    if (!(ms >= 0)) {
        return std::nullopt;
    }
    return milliseconds(
        ms < static_cast<double>(kLongestWaitMs) ? static_cast<std::int64_t>(ms) : kLongestWaitMs
    );
}

// "1.2s", "20 seconds", "450ms", "2m": a number and a unit at the start of `text`.
std::optional<milliseconds> leading_wait(std::string_view text) {
    double number = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) {
        return std::nullopt;
    }
    text = base::trim(text.substr(static_cast<std::size_t>(stop - text.data())));
    if (text.starts_with("ms") || text.starts_with("milli")) {
        return bounded(number);
    }
    if (text.starts_with('m')) {
        return bounded(number * 60'000);
    }
    return text.starts_with('s') ? bounded(number * 1000) : std::nullopt;
}

}  // namespace

CallFailure failure_of_answer(
    int status,
    std::string_view body,
    std::optional<milliseconds> retry_after_header,
    std::string_view where
) {
    Facts facts;
    if (const auto value = parse_json_leniently(body)) {
        take_error(*value, facts);
    }
    std::string message = "HTTP " + std::to_string(status) + " from " + std::string(where);
    const std::string text = excerpt(body);
    message += text.empty() ? " with an empty body" : ": " + text;
    CallFailure out = classify(status, facts.marks, body, std::move(message));
    if (out.retryable && retry_after_header) {
        out.retry_after = retry_after_header;
    }
    return out;
}

CallFailure failure_of_error_value(const json::value& error) {
    Facts facts;
    take_error(error, facts);
    const std::string text = json::serialize(error);
    return classify(
        facts.status,
        facts.marks,
        text,
        "the provider reported an error in its stream: " + excerpt(text)
    );
}

CallFailure failure_of_protocol(std::string_view what) {
    CallFailure out;
    out.error = {ErrorKind::unavailable, "model_protocol", std::string(what)};
    out.retryable = true;
    return out;
}

std::optional<milliseconds> parse_retry_after(std::string_view value, std::int64_t now_ms) {
    value = base::trim(value);
    double seconds = 0;
    const char* end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, seconds);
    if (error == std::errc{} && stop == end) {
        return bounded(seconds * 1000);
    }
    std::tm utc{};
    const std::string text(value);
    if (::strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &utc) == nullptr) {
        return std::nullopt;
    }
    const std::int64_t at_ms = static_cast<std::int64_t>(::timegm(&utc)) * 1000;
    return bounded(static_cast<double>(at_ms > now_ms ? at_ms - now_ms : 0));
}

std::optional<milliseconds> retry_hint_in(std::string_view text) {
    const std::string words = lower(text);
    for (const std::string_view mark : {"try again in ", "retry in ", "\"retrydelay\":"}) {
        std::size_t at = words.find(mark);
        if (at == std::string::npos) {
            continue;
        }
        at = words.find_first_not_of(" \"", at + mark.size());
        if (at != std::string::npos) {
            if (const auto wait = leading_wait(std::string_view(words).substr(at))) {
                return wait;
            }
        }
    }
    return std::nullopt;
}

}  // namespace ars::models
