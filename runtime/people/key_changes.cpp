// Keys made, changed and revoked by API, and when keys were last used.
#include "base/clock.hpp"
#include "base/digest.hpp"
#include "runtime/people/directory.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>

namespace ars::people {

namespace json = boost::json;

namespace {

using namespace std::chrono_literals;

constexpr auto kWriteUses = 60s;           // so often at most is the last use of a key written
constexpr std::size_t kUsesAtOnce = 1000;  // in one commit

json::value time_or_null(std::int64_t ms) {
    return ms == 0 ? json::value() : json::value(base::iso8601(ms));
}

json::object key_detail(const ApiKey& key) {
    return {
        {"name", key.name},
        {"user_id", key.uid},
        {"enabled", key.enabled},
        {"expires_at", time_or_null(key.expires_ms)},
        {"act_for", json::array(key.act_for.begin(), key.act_for.end())},
    };
}

std::string intent_of(const NewKey& wanted, const std::string& uid) {
    return base::sha256_hex(json::serialize(json::array{
        wanted.name,
        uid,
        wanted.expires_ms,
        json::array(wanted.act_for.begin(), wanted.act_for.end())
    }));
}

std::unexpected<base::Error> refuse_acting() {
    return base::fail(
        base::ErrorKind::forbidden,
        "acting_not_allowed",
        "a key made while acting for somebody would outlive the permission to act for him: use a "
        "key of the user's own, or an administrator's without X-Acting-For"
    );
}

}  // namespace

base::Result<void> Directory::check_new_key(const Caller& caller, const NewKey& wanted) const {
    if (keyless()) {
        return base::fail(
            base::ErrorKind::conflict,
            "keyless",
            "this server demands no key yet, and the first one would lock everybody else out: add "
            "api_keys to " +
                declaration_.file + " first"
        );
    }
    if (caller.is_acting()) {
        return refuse_acting();
    }
    const std::string& uid = wanted.uid.empty() ? caller.user.uid : wanted.uid;
    if (!caller.is_admin() && (uid != caller.user.uid || !wanted.act_for.empty())) {
        return base::fail(
            base::ErrorKind::forbidden,
            "admins_only",
            "only administrators make keys for others, or keys that act for others"
        );
    }
    const auto owner = find_user(uid);
    if (!owner) {
        return base::fail(
            base::ErrorKind::not_found, "user_not_found", "there is no user \"" + uid + "\""
        );
    }
    if (owner->role > caller.user.role) {
        return base::fail(
            base::ErrorKind::forbidden,
            "role_too_low",
            "\"" + uid + "\" has a higher role than you: a superadmin makes keys for him"
        );
    }
    return {};
}

const ApiKey* Directory::key_of_request(
    const std::string& created_by, const std::string& request_id
) const {
    const auto found = std::ranges::find_if(keys_, [&](const auto& entry) {
        return !request_id.empty() && entry.second.request_id == request_id &&
               entry.second.created_by == created_by;
    });
    return found == keys_.end() ? nullptr : &found->second;
}

std::optional<std::string> Directory::oldest_revoked() const {
    const ApiKey* oldest = nullptr;
    for (const auto& [id, key] : keys_) {
        if (key.revoked_ms != 0 && (oldest == nullptr || key.revoked_ms < oldest->revoked_ms)) {
            oldest = &key;
        }
    }
    return oldest == nullptr ? std::nullopt : std::optional(oldest->id);
}

base::Task<base::Result<CreatedKey>> Directory::create_key(Caller caller, NewKey wanted) {
    const Turn mine = co_await turn();
    if (auto allowed = check_new_key(caller, wanted); !allowed) {
        co_return std::unexpected(allowed.error());
    }
    ApiKey key;
    key.uid = wanted.uid.empty() ? caller.user.uid : wanted.uid;
    key.intent = intent_of(wanted, key.uid);
    if (const ApiKey* made = key_of_request(caller.user.uid, wanted.request_id)) {
        if (made->intent != key.intent) {
            co_return base::fail(
                base::ErrorKind::conflict,
                "request_id_conflict",
                "the request_id belongs to a key that was asked for with other values"
            );
        }
        co_return CreatedKey{*made, ""};
    }
    const std::int64_t now = base::now_ms();
    if (wanted.expires_ms != 0 && wanted.expires_ms <= now) {
        co_return base::fail(base::ErrorKind::invalid, "expired", "expires_at: lies in the past");
    }
    const auto stored =
        std::ranges::count_if(keys_, [](const auto& entry) { return !entry.second.declared; });
    const bool full = static_cast<std::size_t>(stored) >= kMaxKeys;
    const auto gives_way = full ? oldest_revoked() : std::nullopt;
    if (full && !gives_way) {
        co_return base::fail(
            base::ErrorKind::conflict,
            "too_many_keys",
            "there are " + std::to_string(kMaxKeys) + " keys: revoke some that nobody uses"
        );
    }
    const std::string secret = make_secret();
    key.id = base::random_uuid();
    key.name = wanted.name;
    key.sha256 = base::sha256_hex(secret);
    key.prefix = shown_prefix(secret);
    key.created_by = caller.user.uid;
    key.request_id = wanted.request_id;
    key.act_for = wanted.act_for;
    key.created_ms = now;
    key.expires_ms = wanted.expires_ms;
    Change change = [key, gives_way](store::WriteTxn& txn) {
        put_key(txn, key);
        if (gives_way) {
            erase_key(txn, *gives_way);
        }
    };
    AuditEntry audit{caller, "key.create", key.id, key_detail(key)};
    const auto written = co_await commit(std::move(audit), std::move(change));
    if (!written) {
        co_return std::unexpected(written.error());
    }
    if (gives_way) {
        keys_.erase(*gives_way);
    }
    keep(key);
    co_return CreatedKey{std::move(key), secret};
}

base::Result<ApiKey> Directory::changeable_key(const Caller& caller, const std::string& id) const {
    auto key = key_for(caller, id);
    if (key && key->declared) {
        return base::fail(
            base::ErrorKind::conflict,
            "key_locked",
            "the key \"" + key->name + "\" stands in " + declaration_.file +
                ": change it there and reload"
        );
    }
    return key;
}

void Directory::keep(const ApiKey& key) {
    keys_[key.id] = key;
    index_keys();
}

base::Task<base::Result<ApiKey>> Directory::change_key(
    Caller caller, std::string id, KeyChange wanted
) {
    const Turn mine = co_await turn();
    auto key = changeable_key(caller, id);
    if (!key) {
        co_return std::unexpected(key.error());
    }
    if (caller.is_acting()) {
        co_return refuse_acting();
    }
    if (key->revoked_ms != 0) {
        co_return base::fail(
            base::ErrorKind::conflict,
            "key_revoked",
            "the key is revoked, and stays so: make another one"
        );
    }
    if (wanted.expires_ms && *wanted.expires_ms != 0 && *wanted.expires_ms <= base::now_ms()) {
        co_return base::fail(
            base::ErrorKind::invalid,
            "expired",
            "expires_at: lies in the past; DELETE revokes a key now"
        );
    }
    key->name = wanted.name.value_or(key->name);
    key->enabled = wanted.enabled.value_or(key->enabled);
    key->expires_ms = wanted.expires_ms.value_or(key->expires_ms);
    Change change = [key = *key](store::WriteTxn& txn) { put_key(txn, key); };
    AuditEntry audit{caller, "key.update", key->id, key_detail(*key)};
    const auto written = co_await commit(std::move(audit), std::move(change));
    if (!written) {
        co_return std::unexpected(written.error());
    }
    keep(*key);
    co_return key;
}

base::Task<base::Result<ApiKey>> Directory::revoke_key(Caller caller, std::string id) {
    const Turn mine = co_await turn();
    auto key = changeable_key(caller, id);
    if (!key || key->revoked_ms != 0) {
        co_return key;
    }
    key->revoked_ms = base::now_ms();
    Change change = [key = *key](store::WriteTxn& txn) { put_key(txn, key); };
    AuditEntry audit{caller, "key.revoke", key->id, key_detail(*key)};
    const auto written = co_await commit(std::move(audit), std::move(change));
    if (!written) {
        co_return std::unexpected(written.error());
    }
    keep(*key);
    co_return key;
}

void Directory::start() { tasks_.spawn(write_uses_again_and_again()); }

base::Task<void> Directory::stop() {
    co_await base::shield_from_cancellation();
    tasks_.cancel_all();
    try {
        co_await tasks_.join();
    } catch (const boost::system::system_error&) {
        // It was told to stop.
    }
    co_await write_uses();
}

base::Task<void> Directory::write_uses_again_and_again() {
    for (;;) {
        co_await base::sleep_until(base::Deadline::after(kWriteUses));
        co_await write_uses();
    }
}

// One commit for all keys together, none when no key was used.
base::Task<void> Directory::write_uses() {
    std::map<std::string, std::int64_t> used;
    std::vector<std::string> gone;
    for (const auto& [id, use] : uses_) {
        if (used.size() + gone.size() == kUsesAtOnce) {
            break;  // the others have their turn in a minute
        }
        if (!keys_.contains(id)) {
            gone.push_back(id);
        } else if (!use.written) {
            used[id] = use.at_ms;
        }
    }
    if (used.empty() && gone.empty()) {
        co_return;
    }
    std::function<base::Result<bool>(store::WriteTxn&)> write = [used, gone](store::WriteTxn& txn
                                                                ) -> base::Result<bool> {
        for (const auto& [id, at_ms] : used) {
            put_last_use(txn, id, at_ms);
        }
        for (const std::string& id : gone) {
            erase_last_use(txn, id);
        }
        return true;
    };
    const auto written = co_await store_.write<bool>(std::move(write));
    if (!written) {
        // A full disk, most likely: with the next round, perhaps.
        log_.warning("key_uses", {{"reason", written.error().message}});
        co_return;
    }
    for (const auto& [id, at_ms] : used) {
        if (const auto use = uses_.find(id); use != uses_.end() && use->second.at_ms == at_ms) {
            use->second.written = true;
        }
    }
    for (const std::string& id : gone) {
        if (!keys_.contains(id)) {  // a reload may have brought it back meanwhile
            uses_.erase(id);
        }
    }
}

}  // namespace ars::people
