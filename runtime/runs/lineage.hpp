// A resume is a new run, and with those it goes on from it is one to its caller: its lineage. What
// counts for a run as a whole (cancel, children, ownership) counts for the lineage.
#pragma once

#include "runtime/store/store.hpp"

#include <vector>

namespace ars::runs {

// The run that goes on from this one, directly or not; itself when none does.
[[nodiscard]] store::RunRecord latest_of_lineage(const store::ReadTxn& txn, store::RunRecord run);

// All of them, newest first. Precondition: the run exists.
[[nodiscard]] std::vector<store::RunRecord> lineage_of(const store::ReadTxn& txn, store::RunNo run);

// True when `run` belongs to the lineage of `member`.
[[nodiscard]] bool in_lineage(const store::ReadTxn& txn, store::RunNo run, store::RunNo member);

// The run that resumed this one; 0 when none did.
[[nodiscard]] store::RunNo resumed_by(const store::ReadTxn& txn, const store::RunRecord& run);

}  // namespace ars::runs
