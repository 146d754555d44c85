#include "runtime/store/commit_hook.hpp"

namespace ars::store {

// Alone in its file, so that a program with its own definition leaves this one out.
void at_commit(CommitMoment /*moment*/) {}

}  // namespace ars::store
