// Scripts of the scripted provider: what the model replies, turn by turn, to one agent. One YAML
// file each:
//
//     agent: data-analyst                   # slug; "*" answers for agents without a script that
//     fits when: {user_contains: "by region"}    # optional: only for such a user message pace:
//     20ms                            # optional: between the pieces of streamed text turns:
//       - text: "I look at the file first."
//         delay: 200ms                      # optional: before the first piece
//         tool_calls:
//           - {id: head, tool: execute, args: {command: "head -n 3 sales.csv"}}
//       - text: "It starts with {{head | line \"date\"}}."
//
// The turn is the number of assistant messages after the last user message, not counting those that
// only make earlier calls again: nothing is remembered between calls, so a run that is taken over
// after a restart goes on where it was.
#pragma once

#include "base/document.hpp"
#include "base/result.hpp"

#include <boost/json/object.hpp>

#include <chrono>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ars::models {

struct ScriptCall {
    std::string id;  // becomes ToolCall::id; placeholders name it
    std::string tool;
    boost::json::object args;  // texts in it may hold placeholders
};

struct ScriptTurn {
    std::string text;
    std::chrono::milliseconds delay{0};
    std::optional<std::chrono::milliseconds> pace;
    std::vector<ScriptCall> tool_calls;
    std::string place;  // "configs/scripts/x.yaml:12"
};

struct ScriptCondition {
    std::string user_contains;
};

struct Script {
    std::string agent;
    ScriptCondition when;
    std::chrono::milliseconds pace{0};
    std::string redo_after;
    std::vector<ScriptTurn> turns;
    std::string file;
};

class ScriptBook {
  public:
    explicit ScriptBook(std::vector<Script> scripts) : scripts_(std::move(scripts)) {}
    // The script for this agent and user message: one of the agent before one of "*", then the one
    // with the longest `user_contains`, then the first. Nullptr when none fits.
    [[nodiscard]] const Script* find(std::string_view agent, std::string_view user) const;
    [[nodiscard]] const std::vector<Script>& scripts() const { return scripts_; }

  private:
    std::vector<Script> scripts_;
};

// Reads all files, or returns every fault of all of them as "file:line: key: what; remedy".
// Placeholders are checked too: they may only name calls of an earlier turn.
[[nodiscard]] std::expected<std::shared_ptr<const ScriptBook>, std::vector<std::string>>
load_scripts(const std::vector<std::string>& files);

}  // namespace ars::models
