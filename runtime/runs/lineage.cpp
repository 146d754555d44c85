#include "runtime/runs/lineage.hpp"

#include <algorithm>

namespace ars::runs {

store::RunNo resumed_by(const store::ReadTxn& txn, const store::RunRecord& run) {
    // Only a run that was interrupted is ever resumed, and a cancel of its lineage may have ended
    // it since.
    if (run.status != store::RunStatus::interrupted && run.status != store::RunStatus::cancelled) {
        return 0;
    }
    for (const store::RunNo no : txn.children_of(run.no)) {
        const auto child = txn.run(no);
        if (child && child->type == store::RunType::resume) {
            return no;
        }
    }
    return 0;
}

store::RunRecord latest_of_lineage(const store::ReadTxn& txn, store::RunRecord run) {
    while (const store::RunNo next = resumed_by(txn, run)) {
        run = txn.run(next).value();
    }
    return run;
}

std::vector<store::RunRecord> lineage_of(const store::ReadTxn& txn, store::RunNo run) {
    std::vector<store::RunRecord> out{latest_of_lineage(txn, txn.run(run).value())};
    while (out.back().type == store::RunType::resume) {
        out.push_back(txn.run(out.back().parent).value());
    }
    return out;
}

bool in_lineage(const store::ReadTxn& txn, store::RunNo run, store::RunNo member) {
    const std::vector<store::RunRecord> all = lineage_of(txn, member);
    return std::ranges::any_of(all, [run](const store::RunRecord& one) { return one.no == run; });
}

}  // namespace ars::runs
