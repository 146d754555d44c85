// ask_user_question: the run stops, a person answers, the run goes on. The stopping and going on is
// the run loop's (runs/interrupts); what reaches call() could not be asked.
#include "runtime/tools/builtin.hpp"
#include "runtime/tools/questions.hpp"

namespace ars::tools {

namespace json = boost::json;

namespace {

json::object schema() {
    return json::object{
        {"type", "object"},
        {"properties",
         {{"questions",
           {{"type", "array"},
            {"description", "1 to 5 questions, each with 2 to 5 options."},
            {"minItems", 1},
            {"items",
             {{"type", "object"},
              {"properties",
               {{"question_id", {{"type", "string"}, {"description", "Key of its answer."}}},
                {"question", {{"type", "string"}}},
                {"options",
                 {{"type", "array"},
                  {"items",
                   {{"type", "object"},
                    {"properties",
                     {{"label", {{"type", "string"}}},
                      {"value", {{"type", "string"}}},
                      {"description", {{"type", "string"}}}}},
                    {"required", {"label", "value"}}}}}},
                {"multi_select", {{"type", "boolean"}, {"default", false}}},
                {"allow_other", {{"type", "boolean"}, {"default", true}}},
                {"operation", {{"type", "string"}}}}},
              {"required", {"question"}}}}}}}},
        {"required", json::array{"questions"}},
    };
}

class AskUserQuestionTool final : public Tool {
  public:
    [[nodiscard]] const ToolSpec& spec() const override { return spec_; }

    base::Task<ToolResult> call(const ToolContext& context, json::object arguments) override {
        (void)context;
        const auto questions = parse_questions(arguments);
        co_return tool_error(
            questions ? "There is nobody here who could answer. Go on with what you know."
                      : questions.error().message
        );
    }

  private:
    ToolSpec spec_{
        std::string(kAskUserQuestion),
        "Asks the user, and waits for the answer. Use it when a decision is theirs and you can't "
        "go on without it: not for what you can find out yourself, and not to report. Ask all you "
        "need in one call.",
        schema(),
        Effect::read_only
    };
};

}  // namespace

std::unique_ptr<Tool> make_ask_user_question_tool() {
    return std::make_unique<AskUserQuestionTool>();
}

}  // namespace ars::tools
