#include "runtime/tools/builtin.hpp"

namespace ars::tools {

std::vector<std::unique_ptr<Tool>> make_file_tools() {
    std::vector<std::unique_ptr<Tool>> tools;
    tools.push_back(make_execute_tool());
    tools.push_back(make_execute_output_tool());
    tools.push_back(make_execute_input_tool());
    tools.push_back(make_execute_kill_tool());
    tools.push_back(make_read_file_tool());
    tools.push_back(make_write_file_tool());
    tools.push_back(make_edit_file_tool());
    tools.push_back(make_ls_tool());
    tools.push_back(make_glob_tool());
    tools.push_back(make_grep_tool());
    tools.push_back(make_write_todos_tool());
    tools.push_back(make_ask_user_question_tool());
    tools.push_back(make_present_artifacts_tool());
    return tools;
}

}  // namespace ars::tools
