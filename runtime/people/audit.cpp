#include "runtime/people/audit.hpp"

#include "base/clock.hpp"

#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <charconv>

namespace ars::people {

namespace json = boost::json;

namespace {

constexpr std::string_view kPrefix = "audit/";
constexpr int kVersion = 1;

// Twenty digits hold every 64-bit number, so that the order of texts is that of numbers.
std::string key_of(std::uint64_t no) { return fmt::format("{}{:020}", kPrefix, no); }

std::uint64_t number_of(std::string_view key) {
    std::uint64_t no = 0;
    std::from_chars(key.data() + kPrefix.size(), key.data() + key.size(), no);
    return no;
}

json::value text_or_null(std::string_view text) {
    return text.empty() ? json::value() : json::value(text);
}

json::object facts_of(const AuditEntry& entry) {
    const Caller& caller = entry.caller;
    return {
        {"action", entry.action},
        {"actor", text_or_null(caller.key_uid)},
        {"key", text_or_null(caller.key_name)},
        {"acting_for", caller.is_acting() ? text_or_null(caller.user.uid) : json::value()},
        {"target", text_or_null(entry.target)},
        {"detail", entry.detail},
    };
}

}  // namespace

void put_audit(store::WriteTxn& txn, const AuditEntry& entry) {
    const auto last = txn.last_entry(kPrefix);
    const std::uint64_t no = last ? number_of(last->key) + 1 : 1;
    json::object line{{"version", kVersion}, {"seq", no}, {"at", base::iso8601(base::now_ms())}};
    for (auto& fact : facts_of(entry)) {
        line[fact.key()] = std::move(fact.value());
    }
    txn.put_entry(key_of(no), json::serialize(line));
    // Two for one: a bound that became smaller is reached without a transaction that erases much.
    for (const auto& old : txn.entries(kPrefix, {}, 2)) {
        if (number_of(old.key) + kAuditEntries <= no) {
            txn.erase_entry(old.key);
        }
    }
}

void log_audit(const base::Log& log, const AuditEntry& entry) {
    log.info("audit", facts_of(entry));
}

std::vector<std::string> audit_lines(
    const store::ReadTxn& txn, std::uint64_t after, std::size_t limit
) {
    std::vector<std::string> lines;
    for (auto& entry : txn.entries(kPrefix, after == 0 ? std::string() : key_of(after), limit)) {
        lines.push_back(std::move(entry.value));
    }
    return lines;
}

}  // namespace ars::people
