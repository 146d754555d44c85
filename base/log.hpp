// The server's own log: one JSON object a line on stderr, with a level, a stable event name and
// fields. Secrets never go in; messages are cut at 4 KiB. Thread-safe: a line is one write(2).
#pragma once

#include <boost/json/object.hpp>

#include <cstdint>
#include <string_view>

namespace ars::base {

enum class LogLevel : std::uint8_t { debug, info, warning, error, off };

class Log {
  public:
    // Borrows `fd`, which must outlive the log.
    Log(int fd, LogLevel least) : fd_(fd), least_(least) {}

    void debug(std::string_view event, boost::json::object fields = {}) const;
    void info(std::string_view event, boost::json::object fields = {}) const;
    void warning(std::string_view event, boost::json::object fields = {}) const;
    void error(std::string_view event, boost::json::object fields = {}) const;

  private:
    void write(LogLevel level, std::string_view event, boost::json::object fields) const;

    int fd_;
    LogLevel least_;
};

}  // namespace ars::base
