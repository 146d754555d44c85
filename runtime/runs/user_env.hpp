// What a user gives to the commands of his runs, and nobody else sees: environment variables, most
// of them keys. A run and its sub-agents keep what there was when the run began.
#pragma once

#include "base/async.hpp"
#include "base/redactor.hpp"
#include "base/result.hpp"
#include "runtime/store/store.hpp"

#include <map>
#include <memory>
#include <string>

namespace ars::runs {

inline constexpr std::size_t kUserVariables = 200;
inline constexpr std::size_t kUserVariableNameBytes = 128;
inline constexpr std::size_t kUserVariableBytes = 32 * 1024;
// Names and values together: each command of a run gets all of it, and each result of a tool is
// searched for it.
inline constexpr std::size_t kUserEnvBytes = 128 * 1024;

using Variables = std::map<std::string, std::string>;

[[nodiscard]] Variables user_variables(const store::ReadTxn& txn, const std::string& uid);
// In the place of all that there were.
base::Task<base::Result<void>> write_user_variables(
    store::Store& store, std::string uid, Variables variables
);

struct UserEnv {
    Variables variables;
    base::Redactor secrets;  // their values, and those of the configuration
};
[[nodiscard]] std::shared_ptr<const UserEnv> make_user_env(
    Variables variables, base::Redactor of_configuration
);

}  // namespace ars::runs
