// Built-in tools called as the run loop calls them, on a real workspace.
#pragma once

#include "base/offload.hpp"
#include "runtime/tools/builtin.hpp"
#include "runtime/tools/environment.hpp"
#include "tests/unit/fsmount/workspace_fixture.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>
#include <memory>
#include <optional>
#include <string>

namespace ars::tools {

// File tools must work without a scope: asking for one fails the call.
class NeverAsked final : public sandbox::Sandbox {
  public:
    base::Task<base::Result<std::shared_ptr<sandbox::Scope>>>
    acquire(sandbox::ScopeKey, std::function<base::Result<sandbox::ScopeSpec>()>) override {
        co_return base::fail(base::ErrorKind::internal, "asked", "a file tool asked for a scope");
    }
    base::Task<void> release(sandbox::ScopeKey) override { co_return; }
    base::Task<void> close() override { co_return; }
    [[nodiscard]] std::size_t size() const override { return 0; }
    [[nodiscard]] const sandbox::SandboxCounters& counters() const override { return counters_; }
    [[nodiscard]] std::string backend() const override { return "none"; }

  private:
    sandbox::SandboxCounters counters_;
};

class ToolsTest : public fsmount::WorkspaceTest {
  protected:
    ToolsTest() : tools_(make_file_tools()) { use(never_asked_); }

    void use(
        sandbox::Sandbox& sandbox, std::function<base::Result<sandbox::ScopeSpec>()> spec = {}
    ) {
        environment_ = std::make_unique<Environment>(
            workspace_,
            "work",
            sandbox,
            sandbox::ScopeKey{"alice", "thread", "default"},
            std::move(spec),
            offload_
        );
        EXPECT_TRUE(workspace_->make_workdir("work"));
    }

    Tool& tool(const std::string& name) {
        for (const auto& one : tools_) {
            if (one->spec().name == name) {
                return *one;
            }
        }
        throw std::runtime_error("no tool " + name);
    }

    ToolResult call(const std::string& name, const std::string& arguments, bool rerun = false) {
        return call(name, boost::json::parse(arguments).as_object(), rerun);
    }
    ToolResult call(const std::string& name, boost::json::object arguments, bool rerun = false) {
        ToolContext context;
        context.call_id = "run:1:0";
        context.environment = environment_.get();
        context.rerun = rerun;
        return run(tool(name).call(context, std::move(arguments)));
    }

    template <class T>
    T run(base::Task<T> task) {
        std::optional<T> out;
        std::exception_ptr failure;
        bool done = false;
        io_.restart();
        boost::asio::co_spawn(io_, std::move(task), [&](std::exception_ptr error, T value) {
            failure = error;
            out = std::move(value);
            done = true;
        });
        while (!done && io_.run_one() > 0) {
        }
        if (failure) {
            std::rethrow_exception(failure);
        }
        return std::move(*out);
    }

    // Host path of a file in the working directory.
    [[nodiscard]] std::string work(const std::string& rest) const {
        return user_data("work/" + rest);
    }

    boost::asio::io_context io_{1};
    base::Offload offload_{2};
    NeverAsked never_asked_;
    std::vector<std::unique_ptr<Tool>> tools_;
    std::unique_ptr<Environment> environment_;
};

}  // namespace ars::tools
