// The host side of what a user sees: the directories behind /home/gem/user-data and
// /home/gem/skills, held open by descriptor, so that no later path look-up can be raced.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace ars::fsmount {

class Workspace {
  public:
    Workspace(
        base::Fd user_data, std::string user_data_source, base::Fd skills, std::string skills_source
    )
        : user_data_(std::move(user_data)),
          skills_(std::move(skills)),
          user_data_source_(std::move(user_data_source)),
          skills_source_(std::move(skills_source)) {}

    [[nodiscard]] int user_data() const { return user_data_.get(); }  // O_PATH directory
    [[nodiscard]] int skills() const { return skills_.get(); }        // O_PATH directory, -1 = none
    // Host paths for bind mounts; user_data_source is empty when user_data() is a detached
    // (idmapped) mount, or nothing on the host at all.
    [[nodiscard]] const std::string& user_data_source() const { return user_data_source_; }
    [[nodiscard]] const std::string& skills_source() const { return skills_source_; }

    // Nothing on the host: user-data is part of the scope's own file system and ends with it.
    [[nodiscard]] bool in_scope() const { return !user_data_; }

    // Makes <workdir_path> below user-data (0700 each part) without following links. Idempotent.
    [[nodiscard]] base::Result<void> make_workdir(const std::string& workdir_path) const;
    // That it is there, a directory, and no link on the way. Errors: as of file_error(),
    // "link_in_path".
    [[nodiscard]] base::Result<void> find_workdir(const std::string& workdir_path) const;

    // A detached mount can be moved into one scope only and can't be copied once root is dropped,
    // so a workspace that needs them holds some. Thread-safe; null when none is left.
    [[nodiscard]] std::shared_ptr<base::Fd> take_spare_mount() const;
    void keep_spare_mounts(std::vector<std::shared_ptr<base::Fd>> spare, bool idmapped);
    // Files keep another owner on disk than the one that tools see.
    [[nodiscard]] bool idmapped() const { return idmapped_; }

  private:
    base::Fd user_data_;
    base::Fd skills_;
    std::string user_data_source_;
    std::string skills_source_;
    mutable std::mutex spare_mutex_;
    mutable std::vector<std::shared_ptr<base::Fd>> spare_mounts_;
    bool idmapped_ = false;
};

// <users_dir>/<safe uid>/workspace and <skills_dir>/<safe uid>, made when missing (0700, owner gem
// when we are root).
[[nodiscard]] base::Result<std::shared_ptr<Workspace>> open_user_workspace(
    const std::string& users_dir, const std::string& skills_dir, const std::string& uid
);

// A workspace that is in_scope().
[[nodiscard]] std::shared_ptr<Workspace> in_scope_workspace();

// `--workspace DIR` of exec, run and tool: DIR itself is user-data. Call before privileges are
// dropped: a directory of another owner becomes an idmapped mount where that is allowed, else the
// error names the chown that helps.
[[nodiscard]] base::Result<std::shared_ptr<Workspace>> open_external_workspace(
    const std::string& directory, bool allow_root_owner
);

}  // namespace ars::fsmount
