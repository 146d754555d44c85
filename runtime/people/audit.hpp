// Who changed what of users, keys and agents: one JSON line for each accepted change, committed
// with it.
#pragma once

#include "base/log.hpp"
#include "runtime/people/caller.hpp"
#include "runtime/store/store.hpp"

#include <boost/json/object.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ars::people {

// The newest ones are kept, at about 300 bytes each.
inline constexpr std::uint64_t kAuditEntries = 20'000;

struct AuditEntry {
    Caller caller;
    std::string action;          // "key.create"
    std::string target;          // a uid, the id of a key, a slug; "" where the action says it all
    boost::json::object detail;  // never a secret
};

// Within the transaction of the change itself. The oldest entries over the bound go.
void put_audit(store::WriteTxn& txn, const AuditEntry& entry);
// The same for the server's log, once the change is committed: event "audit".
void log_audit(const base::Log& log, const AuditEntry& entry);

// Oldest first, those with seq > `after`: {"version", "seq", "at", "action", "actor", "key",
// "acting_for", "target", "detail"}, without line ends.
[[nodiscard]] std::vector<std::string> audit_lines(
    const store::ReadTxn& txn, std::uint64_t after, std::size_t limit
);

}  // namespace ars::people
