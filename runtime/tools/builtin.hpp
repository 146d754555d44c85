// The built-in tools that work on the user's files and run commands.
#pragma once

#include "runtime/tools/tool.hpp"

#include <memory>
#include <vector>

namespace ars::tools {

[[nodiscard]] std::unique_ptr<Tool> make_execute_tool();
[[nodiscard]] std::unique_ptr<Tool> make_execute_output_tool();
[[nodiscard]] std::unique_ptr<Tool> make_execute_input_tool();
[[nodiscard]] std::unique_ptr<Tool> make_execute_kill_tool();
[[nodiscard]] std::unique_ptr<Tool> make_read_file_tool();
[[nodiscard]] std::unique_ptr<Tool> make_write_file_tool();
[[nodiscard]] std::unique_ptr<Tool> make_edit_file_tool();
[[nodiscard]] std::unique_ptr<Tool> make_ls_tool();
[[nodiscard]] std::unique_ptr<Tool> make_glob_tool();
[[nodiscard]] std::unique_ptr<Tool> make_grep_tool();
[[nodiscard]] std::unique_ptr<Tool> make_write_todos_tool();
[[nodiscard]] std::unique_ptr<Tool> make_ask_user_question_tool();
[[nodiscard]] std::unique_ptr<Tool> make_present_artifacts_tool();

// All of them. Stateless: one set serves every run.
[[nodiscard]] std::vector<std::unique_ptr<Tool>> make_file_tools();

}  // namespace ars::tools
