// What the tools of one execution tree share: the user's files, the current directory, and the sandbox scope,
// which is made at the first tool that needs it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/async.hpp"
#include "base/offload.hpp"
#include "base/result.hpp"
#include "fsmount/workspace.hpp"
#include "sandbox/scope.hpp"

namespace ars::tools {

class Environment {
  public:
    Environment(
        std::shared_ptr<fsmount::Workspace> workspace,
        std::string workdir_path,
        sandbox::Sandbox& sandbox,
        sandbox::ScopeKey key,
        std::function<base::Result<sandbox::ScopeSpec>()> spec,
        base::Offload& offload
    );

    [[nodiscard]] const std::shared_ptr<fsmount::Workspace>& workspace() const { return workspace_; }
    // "/home/gem/user-data/projects/<uuid>"
    [[nodiscard]] const std::string& cwd() const { return cwd_; }
    [[nodiscard]] base::Offload& offload() const { return offload_; }
    base::Task<base::Result<std::shared_ptr<sandbox::Scope>>> scope();

    // A new file under <workdir>/outputs/large_tool_results for a text too long for the model.
    struct OutputFile {
        std::shared_ptr<base::Fd> fd;
        std::string guest_path;
    };
    [[nodiscard]] base::Result<OutputFile> make_output_file(const std::string& name) const;

  private:
    std::shared_ptr<fsmount::Workspace> workspace_;
    std::string cwd_;
    sandbox::Sandbox& sandbox_;
    sandbox::ScopeKey key_;
    std::function<base::Result<sandbox::ScopeSpec>()> spec_;
    base::Offload& offload_;
};

}  // namespace ars::tools
