// Projects: names that users give to directories of their workspaces, for threads to work in. A
// thread without one has a directory of its own, "projects/<uuid>", which is made when it is
// needed. That of a project is the user's: it is there, or nothing works in it.
#pragma once

#include "base/result.hpp"
#include "runtime/store/store.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ars::runs {

inline constexpr std::size_t kProjectsOfUser = 1000;
inline constexpr std::string_view kManagedWorkdirs = "projects/";

struct Project {
    std::string id;
    std::string uid;
    std::string name;
    std::string workdir_path;
    std::string request_id;  // of its creation
    std::int64_t created_ms = 0;
};

// The oldest first.
[[nodiscard]] std::vector<Project> projects_of(const store::ReadTxn& txn, const std::string& uid);
// Error not_found "project_not_found"; another user's looks missing.
[[nodiscard]] base::Result<Project> find_project(
    const store::ReadTxn& txn, const std::string& uid, const std::string& id
);
// A new one, or the one that was made with the same request id and the same facts. Errors: conflict
// "request_id_conflict", exhausted "too_many_projects".
[[nodiscard]] base::Result<Project> write_project(store::WriteTxn& txn, Project wanted);

// Which project a thread was made for, empty = none. A sub-agent's thread works where its root
// works.
void put_project_of_thread(
    store::WriteTxn& txn, const std::string& thread_id, const std::string& project_id
);
[[nodiscard]] std::string project_of_thread(
    const store::ReadTxn& txn, const store::ThreadRecord& thread
);

// The directory of a thread without a project.
[[nodiscard]] std::string new_managed_workdir();
// Such a name, by its form alone.
[[nodiscard]] bool is_managed_workdir(std::string_view workdir_path);

}  // namespace ars::runs
