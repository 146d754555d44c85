// `ars run` on a terminal: asks the person in front of it what an interrupted run waits for.
#pragma once

#include "base/offload.hpp"
#include "server/line_reader.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <cstdio>
#include <optional>
#include <string>

namespace ars::server {

class RunDialog {
  public:
    RunDialog(int input, std::FILE* out) : lines_(input), out_(out) {}

    // `interrupts` as a run's view shows them. The value for a resume; nothing when the input
    // ended first.
    base::Task<std::optional<boost::json::object>> ask(boost::json::array interrupts);
    // Ends a question that waits: what asked it was cancelled.
    void stop() { lines_.stop(); }

  private:
    base::Task<std::optional<std::string>> line();
    base::Task<std::optional<boost::json::object>> approval(boost::json::object interrupt);
    base::Task<std::optional<boost::json::object>> answers(boost::json::object interrupt);
    base::Task<std::optional<boost::json::value>> answer(boost::json::object question);
    void print(std::string_view text);

    LineReader lines_;
    std::FILE* out_;
    base::Offload offload_{1};
};

}  // namespace ars::server
