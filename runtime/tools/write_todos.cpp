// write_todos: the agent's own list of what is to be done, kept in the thread's state.
#include "base/fields.hpp"
#include "runtime/tools/blocking_tool.hpp"
#include "runtime/tools/builtin.hpp"

#include <fmt/format.h>

namespace ars::tools {

namespace {

enum class TodoStatus : std::uint8_t { pending, in_progress, completed };

struct Todo {
    std::string content;
    TodoStatus status = TodoStatus::pending;
};

struct Arguments {
    std::vector<Todo> todos;
};

const base::Fields<Todo>& todo_fields() {
    static const base::Fields<Todo> table =
        base::Fields<Todo>{}
            .text("content", &Todo::content, {.required = true, .min = 1, .max = 4096})
            .choice(
                "status",
                &Todo::status,
                {{"pending", TodoStatus::pending},
                 {"in_progress", TodoStatus::in_progress},
                 {"completed", TodoStatus::completed}},
                {.required = true}
            );
    return table;
}

const base::Fields<Arguments>& fields() {
    static const base::Fields<Arguments> table = base::Fields<Arguments>{}.objects(
        "todos",
        &Arguments::todos,
        todo_fields(),
        {.required = true, .max = 200, .doc = "The whole list; it replaces the one before."}
    );
    return table;
}

class WriteTodosTool final : public Tool {
  public:
    [[nodiscard]] const ToolSpec& spec() const override { return spec_; }

    base::Task<ToolResult> call(const ToolContext& context, boost::json::object arguments)
        override {
        (void)context;
        Arguments decoded;
        if (const auto faults = fields().decode(arguments, decoded); !faults.empty()) {
            co_return error_result(base::faults_error("invalid_argument", faults));
        }
        std::size_t done = 0;
        for (const Todo& todo : decoded.todos) {
            done += todo.status == TodoStatus::completed ? 1 : 0;
        }
        ToolResult result;
        result.text =
            fmt::format("Todo list updated: {} of {} completed.", done, decoded.todos.size());
        result.facts = {{"todos", decoded.todos.size()}, {"completed", done}};
        result.state["todos"] = fields().encode(decoded).at("todos");
        co_return result;
    }

  private:
    ToolSpec spec_{
        "write_todos",
        "Writes your list of what is to be done for a job of several steps, with the status of "
        "each. Send the "
        "whole list each time; keep one item in_progress.",
        fields().schema(),
        Effect::pure
    };
};

}  // namespace

std::unique_ptr<Tool> make_write_todos_tool() { return std::make_unique<WriteTodosTool>(); }

}  // namespace ars::tools
