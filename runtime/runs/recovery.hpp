// The first transaction of a boot. Everything that was not terminal has a dead owner: this says
// what becomes of it.
#pragma once

#include "runtime/runs/run_parts.hpp"

#include <vector>

namespace ars::runs {

// Ends what was being cancelled, children of ended roots, and runs that twenty boots could not
// move; puts running ones back to pending with attempt + 1 and a `reset` event. Returns those to
// serve, in their old order.
base::Task<base::Result<std::vector<store::RunRecord>>> take_over_open_runs(const RunParts& parts);

}  // namespace ars::runs
