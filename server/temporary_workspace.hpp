// A workspace for one command without `--workspace`: made in the temporary directory, removed with
// all it holds.
#pragma once

#include "base/result.hpp"
#include "fsmount/workspace.hpp"

#include <memory>
#include <string>

namespace ars::server {

class TemporaryWorkspace {
  public:
    // Call after privileges are dropped: the directory then belongs to gem.
    [[nodiscard]] static base::Result<std::unique_ptr<TemporaryWorkspace>> make();
    TemporaryWorkspace(const TemporaryWorkspace&) = delete;
    TemporaryWorkspace& operator=(const TemporaryWorkspace&) = delete;
    ~TemporaryWorkspace();

    [[nodiscard]] const std::shared_ptr<fsmount::Workspace>& workspace() const {
        return workspace_;
    }

  private:
    explicit TemporaryWorkspace(std::string path) : path_(std::move(path)) {}
    std::string path_;
    std::shared_ptr<fsmount::Workspace> workspace_;
};

}  // namespace ars::server
