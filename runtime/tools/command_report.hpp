// What the tools that run commands say about them, and the ids that a model knows commands by.
#pragma once

#include "base/result.hpp"
#include "runtime/tools/tool.hpp"
#include "sandbox/scope.hpp"

#include <boost/json/object.hpp>

#include <memory>
#include <string>

namespace ars::tools {

// A model may ask with an id from before a restart: it carries a mark of its scope, so that it
// never means another scope's command.
[[nodiscard]] std::string command_id(const sandbox::Scope& scope, const sandbox::Process& process);
// Error "command_gone": not of this scope; "not_found": forgotten, or never given.
[[nodiscard]] base::Result<std::shared_ptr<sandbox::Process>> find_command(
    const sandbox::Scope& scope, const std::string& id
);

// The lines below the output of a command that is over. `timeout` in seconds, 0 = not known.
[[nodiscard]] std::string ending(const sandbox::Outcome& outcome, std::int64_t timeout);
// The line below the output of one that goes on.
[[nodiscard]] std::string going_on(const std::string& id, std::uint64_t next_offset);
[[nodiscard]] boost::json::object facts_of(const sandbox::Outcome& outcome);
// A command that ran and failed is an answer; one that was stopped is an error.
[[nodiscard]] bool is_error(const sandbox::Outcome& outcome);

// `text` with a line feed at its end, unless it is empty.
[[nodiscard]] std::string whole_lines(std::string text);

}  // namespace ars::tools
