// `ars run` on a terminal: a run's events as a tree that grows line by line, so that it reads the
// same in a log. It only appends: parallel sub-agents interleave by whole lines, each line says
// whose it is.
#pragma once

#include "runtime/store/records.hpp"

#include <boost/json/object.hpp>

#include <cstdio>
#include <map>
#include <string>
#include <string_view>

namespace ars::server {

class RunPrinter {
  public:
    // `colour`: escape sequences for a terminal.
    RunPrinter(std::FILE* out, bool colour) : out_(out), colour_(colour) {}

    // A run comes into view: depth 0 for the root. `label` is unique among those shown
    // ("data-analyst-2").
    void begin(store::RunNo run, int depth, std::string label, std::string_view note);
    void event(const store::EventRecord& event);

  private:
    struct View {
        int depth = 0;
        std::string label;
        std::string line;                          // text not yet ended by a newline
        std::map<std::string, std::string> calls;  // call id -> one-line summary
    };
    void print_line(const View& view, std::string_view colour, std::string_view text);
    void text(View& view, std::string_view piece);
    void flush(View& view);
    void messages(View& view, const boost::json::object& payload);
    void interrupt(View& view, const boost::json::object& payload);
    void custom(View& view, const boost::json::object& payload);
    void tool_finished(View& view, const boost::json::object& data);

    std::FILE* out_;
    bool colour_;
    std::map<store::RunNo, View> views_;
};

// "awk -F, '{...' ": the argument a person looks for first, on one line, at most `max` bytes.
[[nodiscard]] std::string call_summary(
    std::string_view tool, const boost::json::object& arguments, std::size_t max
);

}  // namespace ars::server
