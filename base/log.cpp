#include "base/log.hpp"

#include "base/clock.hpp"
#include "base/text.hpp"

#include <boost/json/serialize.hpp>

#include <string>

#include <unistd.h>

namespace ars::base {

namespace {

constexpr std::string_view kNames[] = {"debug", "info", "warning", "error"};
constexpr std::size_t kMaxText = 4096;

}  // namespace

void Log::debug(std::string_view event, boost::json::object fields) const {
    write(LogLevel::debug, event, std::move(fields));
}
void Log::info(std::string_view event, boost::json::object fields) const {
    write(LogLevel::info, event, std::move(fields));
}
void Log::warning(std::string_view event, boost::json::object fields) const {
    write(LogLevel::warning, event, std::move(fields));
}
void Log::error(std::string_view event, boost::json::object fields) const {
    write(LogLevel::error, event, std::move(fields));
}

void Log::write(LogLevel level, std::string_view event, boost::json::object fields) const {
    if (level < least_) {
        return;
    }
    boost::json::object line;
    line["time"] = iso8601(now_ms());
    line["level"] = kNames[static_cast<std::size_t>(level)];
    line["event"] = event;
    if (secrets_ != nullptr) {
        secrets_->redact(fields);  // before a cut could leave a part of one
    }
    for (auto& [key, value] : fields) {
        if (value.is_string() && value.get_string().size() > kMaxText) {
            value = utf8_head(value.get_string(), kMaxText);
        }
        line[key] = std::move(value);
    }
    const std::string text = boost::json::serialize(line) + "\n";
    // A log that can't be written must not stop the server: the result is not looked at.
    [[maybe_unused]] const ssize_t written = ::write(fd_, text.data(), text.size());
}

}  // namespace ars::base
