#include "server/config_files.hpp"

#include "base/fd.hpp"
#include "base/fields.hpp"
#include "base/text.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include <fnmatch.h>

namespace ars::server {

namespace {

namespace json = boost::json;
namespace fs = std::filesystem;
constexpr std::size_t kSecretBytes = 64 * 1024;
constexpr std::string_view kExpandedFields =
    "models.default, models.providers.*.base_url, server.listen, data_dir and mounts.users";

bool may_expand(std::string_view pointer) {
    if (pointer == "/models/default" || pointer == "/server/listen" || pointer == "/data_dir" ||
        pointer == "/mounts/users") {
        return true;
    }
    return pointer.starts_with("/models/providers/") && pointer.ends_with("/base_url");
}

std::string expand(std::string_view text, const base::FieldPlace& place) {
    std::string out;
    for (;;) {
        const std::size_t open = text.find("${");
        out += text.substr(0, open);
        if (open == std::string_view::npos) {
            return out;
        }
        const std::size_t close = text.find('}', open);
        if (close == std::string_view::npos) {
            place.fault("\"${\" is not closed", "write ${NAME} or ${NAME:-default}");
            return out;
        }
        const std::string_view inside = text.substr(open + 2, close - open - 2);
        text.remove_prefix(close + 1);
        const std::size_t colon = inside.find(":-");
        const std::string name(inside.substr(0, colon));
        if (auto value = environment_variable(name)) {
            out += *value;
        } else if (colon != std::string_view::npos) {
            out += inside.substr(colon + 2);
        } else {
            place.fault(
                "the environment variable " + name + " is not set",
                "export it, or write a default: ${" + name + ":-...}"
            );
        }
    }
}

void expand_value(json::value& value, const base::FieldPlace& place) {
    if (auto* text = value.if_string()) {
        if (text->find("${") == json::string::npos) {
            return;
        }
        if (may_expand(place.path)) {
            value = expand(std::string(*text), place);
        } else {
            place.fault(
                "environment variables are not expanded here",
                "they are in " + std::string(kExpandedFields) +
                    "; for keys name the variable in key_env or api_key_env"
            );
        }
    } else if (auto* object = value.if_object()) {
        for (auto& entry : *object) {
            expand_value(entry.value(), place.at(entry.key()));
        }
    } else if (auto* array = value.if_array()) {
        for (std::size_t i = 0; i < array->size(); ++i) {
            expand_value((*array)[i], place.at(i));
        }
    }
}

std::optional<int> digits(std::string_view text, std::size_t at, std::size_t count) {
    int number = 0;
    if (at + count > text.size() || text[at] == '-') {
        return std::nullopt;
    }
    const char* end = text.data() + at + count;
    const auto parsed = std::from_chars(text.data() + at, end, number);
    return parsed.ec == std::errc{} && parsed.ptr == end ? std::optional(number) : std::nullopt;
}

// Takes ".5" or ".123456" off: at most nanoseconds, of which milliseconds count.
std::optional<std::chrono::milliseconds> fraction(std::string_view& text) {
    if (!text.starts_with('.')) {
        return std::chrono::milliseconds(0);
    }
    text.remove_prefix(1);
    std::string part(text.substr(0, text.find_first_not_of("0123456789")));
    if (part.empty() || part.size() > 9) {
        return std::nullopt;
    }
    text.remove_prefix(part.size());
    part.resize(3, '0');
    return std::chrono::milliseconds(*digits(part, 0, 3));
}

// "Z", "+02:00"
std::optional<std::chrono::minutes> offset(std::string_view text) {
    if (text == "Z") {
        return std::chrono::minutes(0);
    }
    const auto hour = digits(text, 1, 2);
    const auto minute = digits(text, 4, 2);
    if (text.size() != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':' || !hour ||
        !minute || *hour > 23 || *minute > 59) {
        return std::nullopt;
    }
    const auto ahead = std::chrono::hours(*hour) + std::chrono::minutes(*minute);
    return text[0] == '+' ? ahead : -ahead;
}

}  // namespace

void expand_variables(base::Document& document, std::vector<base::Fault>& faults) {
    expand_value(document.value, base::FieldPlace{{}, faults, {}});
}

std::string beside(const std::string& file, const std::string& path) {
    return (fs::path(file).parent_path() / path).lexically_normal().string();
}

std::string absolute_path(const std::string& path) {
    return fs::absolute(path).lexically_normal().string();
}

std::vector<std::string> matching_files(const std::string& pattern) {
    const fs::path path(pattern);
    const std::string name = path.filename().string();
    std::vector<std::string> out;
    std::error_code error;
    if (name.find_first_of("*?") == std::string::npos) {
        if (fs::is_regular_file(path, error)) {
            out.push_back(pattern);
        }
        return out;
    }
    const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
        const std::string found = entry->path().filename().string();
        std::error_code ignored;
        if (::fnmatch(name.c_str(), found.c_str(), FNM_PERIOD) == 0 &&
            entry->is_regular_file(ignored)) {
            out.push_back((path.parent_path() / found).string());
        }
    }
    std::sort(out.begin(), out.end());
    return out;
}

std::optional<std::string> environment_variable(const std::string& name) {
    const char* value = std::getenv(name.c_str());
    return value != nullptr && *value != '\0' ? std::optional<std::string>(value) : std::nullopt;
}

base::Result<std::string> read_secret(const std::string& path) {
    auto text = base::read_file(path, kSecretBytes);
    if (!text) {
        return text;
    }
    std::string secret(base::trim(*text));
    if (secret.empty()) {
        return base::fail(base::ErrorKind::invalid, "empty_secret", path + " is empty");
    }
    return secret;
}

std::optional<std::int64_t> parse_date(std::string_view text) {
    using namespace std::chrono;
    const auto year_number = digits(text, 0, 4);
    const auto month_number = digits(text, 5, 2);
    const auto day_number = digits(text, 8, 2);
    if (!year_number || !month_number || !day_number || text[4] != '-' || text[7] != '-') {
        return std::nullopt;
    }
    const year_month_day date{
        year(*year_number),
        month(static_cast<unsigned>(*month_number)),
        day(static_cast<unsigned>(*day_number))
    };
    if (!date.ok()) {
        return std::nullopt;
    }
    const milliseconds midnight = sys_days(date).time_since_epoch();
    if (text.size() == 10) {
        return midnight.count();
    }
    const auto hour = digits(text, 11, 2);
    const auto minute = digits(text, 14, 2);
    const auto second = digits(text, 17, 2);
    if (!second || text[10] != 'T' || text[13] != ':' || text[16] != ':' || !hour || !minute ||
        *hour > 23 || *minute > 59 || *second > 59) {
        return std::nullopt;
    }
    const milliseconds time = midnight + hours(*hour) + minutes(*minute) + seconds(*second);
    text.remove_prefix(19);
    const auto part = fraction(text);
    const auto zone = part ? offset(text) : std::nullopt;
    return zone ? std::optional((time + *part - *zone).count()) : std::nullopt;
}

}  // namespace ars::server
