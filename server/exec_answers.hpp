// What each line of `ars exec --batch` is answered with, as JSON.
#pragma once

#include "base/async.hpp"
#include "sandbox/scope.hpp"
#include "server/exec_batch.hpp"

#include <boost/json/object.hpp>

#include <memory>

namespace ars::server {

// Ids belong to `scope`; one it does not know is {"status": "not_found"}, and what can't be done
// now is {"status": <code>, "detail": <sentence>}.
[[nodiscard]] base::Task<boost::json::object> answer(
    std::shared_ptr<sandbox::Scope> scope, BatchLine line
);

// The outcome of a command that never got to a scope.
[[nodiscard]] sandbox::Outcome failed_outcome(std::string detail);

}  // namespace ars::server
