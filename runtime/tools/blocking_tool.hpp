// A tool whose work is one blocking function of its arguments and the user's files, run off the I/O
// thread.
#pragma once

#include "base/fields.hpp"
#include "runtime/tools/environment.hpp"
#include "runtime/tools/tool.hpp"

#include <exception>
#include <string>
#include <utility>

namespace ars::tools {

// What the function may use; it owns all of it, so it stays valid when the caller is cancelled.
struct BlockingCall {
    fsmount::Paths paths;
    base::Deadline deadline;  // walks over trees and files stop here and say so
    bool rerun = false;
};

// "not_found: /home/gem/user-data/x does not exist": the code is for programs, the sentence for the
// model.
[[nodiscard]] inline ToolResult error_result(const base::Error& error) {
    return ToolResult{error.code + ": " + error.message, true, {{"error", error.code}}, {}};
}

inline constexpr auto kFileWorkLimit = std::chrono::seconds(20);

template <class Arguments>
class BlockingTool final : public Tool {
  public:
    using Work = ToolResult (*)(const BlockingCall& call, const Arguments& arguments);

    BlockingTool(ToolSpec spec, const base::Fields<Arguments>& fields, Work work)
        : spec_(std::move(spec)), fields_(fields), work_(work) {
        spec_.parameters = fields.schema();
    }

    [[nodiscard]] const ToolSpec& spec() const override { return spec_; }

    base::Task<ToolResult> call(const ToolContext& context, boost::json::object arguments)
        override {
        Arguments decoded;
        if (const auto faults = fields_.decode(arguments, decoded); !faults.empty()) {
            co_return error_result(base::faults_error("invalid_argument", faults));
        }
        const auto limit = base::Deadline::after(kFileWorkLimit).earlier(context.deadline);
        BlockingCall call{context.environment->paths(), limit, context.rerun};
        auto job = [work = work_, call = std::move(call), decoded = std::move(decoded)] {
            return guarded(work, call, decoded);
        };
        co_return co_await context.environment->offload().run(std::move(job));
    }

  private:
    // A pool thread must not see an exception.
    static ToolResult guarded(Work work, const BlockingCall& call, const Arguments& arguments) {
        try {
            return work(call, arguments);
        } catch (const std::exception& error) {
            return tool_error(std::string("internal: the tool failed: ") + error.what());
        }
    }

    ToolSpec spec_;
    const base::Fields<Arguments>& fields_;
    Work work_;
};

}  // namespace ars::tools
