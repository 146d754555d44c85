// The server's own log: one JSON object a line on stderr, with a level, a stable event name and
// fields. Texts are cut at 4 KiB. Thread-safe: a line is one write(2).
#pragma once

#include "base/redactor.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <string_view>

namespace ars::base {

enum class LogLevel : std::uint8_t { debug, info, warning, error, off };

class Log {
  public:
    // Borrows both, which must outlive the log. Values of `secrets` are in no line.
    Log(int fd, LogLevel least, const Redactor* secrets = nullptr)
        : fd_(fd), least_(least), secrets_(secrets) {}

    void debug(std::string_view event, boost::json::object fields = {}) const;
    void info(std::string_view event, boost::json::object fields = {}) const;
    void warning(std::string_view event, boost::json::object fields = {}) const;
    void error(std::string_view event, boost::json::object fields = {}) const;

  private:
    void write(LogLevel level, std::string_view event, boost::json::object fields) const;

    int fd_;
    LogLevel least_;
    const Redactor* secrets_;
};

}  // namespace ars::base
