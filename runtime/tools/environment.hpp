// What the tools of one execution tree share: the user's files, the current directory, and the
// sandbox scope, which is made at the first tool that needs it.
#pragma once

#include "base/async.hpp"
#include "base/offload.hpp"
#include "base/result.hpp"
#include "fsmount/paths.hpp"
#include "fsmount/workspace.hpp"
#include "sandbox/scope.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace ars::tools {

class Environment {
  public:
    Environment(
        std::shared_ptr<fsmount::Workspace> workspace,
        std::string workdir_path,
        sandbox::Sandbox& sandbox,
        sandbox::ScopeKey key,
        std::function<base::Result<sandbox::ScopeSpec>()> spec,
        base::Offload& offload,
        std::function<std::map<std::string, std::string>()> variables = sandbox::default_environment
    );

    [[nodiscard]] const std::shared_ptr<fsmount::Workspace>& workspace() const {
        return workspace_;
    }
    // "/home/gem/user-data/projects/<uuid>"
    [[nodiscard]] const std::string& cwd() const { return cwd_; }
    // The whole environment of each command.
    [[nodiscard]] std::map<std::string, std::string> variables() const { return variables_(); }
    [[nodiscard]] base::Offload& offload() const { return offload_; }
    // The file tools' door to the workspace; relative paths start at cwd().
    [[nodiscard]] fsmount::Paths paths() const { return fsmount::Paths(workspace_, cwd_); }
    base::Task<base::Result<std::shared_ptr<sandbox::Scope>>> scope();
    // True once for each scope that took another one's place: /tmp and processes of the old one are
    // gone. The one before may have been an earlier run's, also of an earlier boot: the last
    // command of the conversation was over at `ms` (wall clock, 0 = there was none), and a scope
    // that is younger is another one.
    [[nodiscard]] bool note_generation(std::uint64_t generation);
    void remember_command(std::int64_t ms);

    // A new file under <workdir>/outputs/large_tool_results for a text too long for the model.
    struct OutputFile {
        std::shared_ptr<base::Fd> fd;
        std::string guest_path;
        bool named = true;  // false: visible to nobody before publish_output_file()
    };
    [[nodiscard]] base::Result<OutputFile> make_output_file(const std::string& name) const;
    // The same before it is known whether the file is needed. It costs nothing when it is not
    // published.
    [[nodiscard]] base::Result<OutputFile> reserve_output_file(const std::string& name) const;
    [[nodiscard]] base::Result<void> publish_output_file(const OutputFile& file) const;

  private:
    std::shared_ptr<fsmount::Workspace> workspace_;
    std::string cwd_;
    sandbox::Sandbox& sandbox_;
    sandbox::ScopeKey key_;
    std::function<base::Result<sandbox::ScopeSpec>()> spec_;
    base::Offload& offload_;
    std::function<std::map<std::string, std::string>()> variables_;
    std::uint64_t generation_ = 0;  // of the last scope used; 0 = none yet
    std::int64_t last_command_ms_ = 0;
};

}  // namespace ars::tools
