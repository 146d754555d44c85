// The workspace of `ars exec`: the directory that was named, or a temporary one that is gone
// afterwards.
#pragma once

#include "base/result.hpp"
#include "fsmount/workspace.hpp"

#include <memory>
#include <string>

namespace ars::server {

// A directory below $TMPDIR (or /tmp) that gem owns, removed with all its content by the
// destructor. Made before root is dropped, removed after.
class TemporaryWorkspace {
  public:
    [[nodiscard]] static base::Result<std::unique_ptr<TemporaryWorkspace>> make();
    TemporaryWorkspace(const TemporaryWorkspace&) = delete;
    TemporaryWorkspace& operator=(const TemporaryWorkspace&) = delete;
    ~TemporaryWorkspace();

    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    explicit TemporaryWorkspace(std::string path) : path_(std::move(path)) {}
    std::string path_;
};

}  // namespace ars::server
