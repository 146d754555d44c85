#include "runtime/people/directory.hpp"

#include "base/clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace ars::people {

namespace {

constexpr const char* kLocalUser = "local";

base::Error one_user_only() {
    return {
        base::ErrorKind::conflict,
        "one_user_only",
        "this server can mount nothing, so all files are one user's, and there may be no second "
        "user; give the container what the namespaces tier needs (ars doctor says what)"
    };
}

}  // namespace

User local_user(const std::vector<User>& declared) {
    return declared.empty() ? User{kLocalUser, UserRole::superadmin, ""} : declared.front();
}

Directory::Directory(
    base::asio::any_io_executor executor, store::Store& store, const base::Log& log
)
    : store_(store), log_(log), turn_(executor), tasks_(std::move(executor)) {}

base::Result<std::unique_ptr<Directory>> Directory::open(
    base::asio::any_io_executor executor,
    store::Store& store,
    const base::Log& log,
    Declaration declaration
) {
    auto stored = store.read([](const store::ReadTxn& txn) { return load_people(txn); });
    if (!stored) {
        return std::unexpected(stored.error());
    }
    std::unique_ptr<Directory> made(new Directory(std::move(executor), store, log));
    for (auto& [uid, entry] : stored->users) {
        made->users_[uid] = std::move(entry);
    }
    made->keys_ = std::move(stored->keys);
    for (const auto& [id, at_ms] : stored->last_uses_ms) {
        made->uses_[id].at_ms = at_ms;
    }
    made->take_in(std::move(declaration));
    const std::int64_t now = base::now_ms();
    for (const auto& [id, key] : made->keys_) {
        if (key.declared || (key.is_usable(now) && made->find_user(key.uid))) {
            made->keyless_ = false;
        }
    }
    return made;
}

base::Result<void> Directory::declare(Declaration declaration) {
    if (one_user_) {
        std::map<std::string, UserEntry, std::less<>> all = users_;
        for (const User& user : declaration.users) {
            all[user.uid];
        }
        if (all.size() > 1) {
            return std::unexpected(one_user_only());
        }
    }
    take_in(std::move(declaration));
    keyless_ = keyless_ && declaration_.keys.empty();
    return {};
}

base::Result<void> Directory::restrict_to_one_user() {
    if (user_count() > 1) {
        return std::unexpected(one_user_only());
    }
    one_user_ = true;
    return {};
}

void Directory::take_in(Declaration declaration) {
    declaration_ = std::move(declaration);
    declared_.clear();
    for (const User& user : declaration_.users) {
        declared_[user.uid] = UserEntry{.user = user, .created_by = {}, .declared = true};
    }
    std::erase_if(keys_, [](const auto& entry) { return entry.second.declared; });
    for (const DeclaredKey& declared : declaration_.keys) {
        ApiKey key;
        key.id = declared_key_id(declared.name);
        key.name = declared.name;
        key.sha256 = declared.sha256;
        key.uid = declared.uid;
        key.act_for = declared.act_for;
        key.expires_ms = declared.expires_ms;
        key.rate_limit = declared.rate_limit;
        key.declared = true;
        keys_[key.id] = std::move(key);
    }
    index_keys();
}

// Buckets and last uses of keys that are still there stay as they are.
void Directory::index_keys() {
    by_digest_.clear();
    for (const auto& [id, key] : keys_) {
        // A declared key wins over a stored one of the same secret.
        auto& place = by_digest_[key.sha256];
        place = place != nullptr && place->declared ? place : &key;
        uses_[id];
    }
}

User Directory::local_user() const { return people::local_user(declaration_.users); }

std::optional<UserEntry> Directory::user_entry(std::string_view uid) const {
    if (const auto found = declared_.find(uid); found != declared_.end()) {
        return found->second;
    }
    const auto found = users_.find(uid);
    return found == users_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<User> Directory::find_user(std::string_view uid) const {
    auto entry = user_entry(uid);
    return entry ? std::optional(std::move(entry->user)) : std::nullopt;
}

std::vector<UserEntry> Directory::users(std::size_t offset, std::size_t limit) const {
    std::map<std::string_view, const UserEntry*> all;
    for (const auto* kind : {&declared_, &users_}) {
        for (const auto& [uid, entry] : *kind) {
            all.emplace(uid, &entry);  // a declared one is there first
        }
    }
    std::vector<UserEntry> out;
    for (const auto& [uid, entry] : all) {
        if (offset > 0) {
            --offset;
        } else if (out.size() < limit) {
            out.push_back(*entry);
        }
    }
    return out;
}

std::size_t Directory::user_count() const {
    const auto is_declared = [this](const auto& entry) { return declared_.contains(entry.first); };
    const auto hidden = std::ranges::count_if(users_, is_declared);
    return declared_.size() + users_.size() - static_cast<std::size_t>(hidden);
}

// A map is as good as a comparison in constant time: what is looked up is a digest, and how far it
// agrees with another one tells nothing about a secret.
const ApiKey* Directory::use_key(std::string_view sha256, std::int64_t now_ms) {
    const auto found = by_digest_.find(std::string(sha256));
    if (found == by_digest_.end() || !found->second->is_usable(now_ms) ||
        !user_entry(found->second->uid)) {
        return nullptr;
    }
    KeyUse& use = uses_[found->second->id];
    use.at_ms = now_ms;
    use.written = false;
    return found->second;
}

std::optional<std::chrono::milliseconds> Directory::take_request(
    const ApiKey& key, TokenBucket::TimePoint now
) {
    const auto& limit = key.rate_limit ? key.rate_limit : declaration_.rate_limit;
    return limit ? uses_[key.id].bucket.take(*limit, now) : std::nullopt;
}

std::int64_t Directory::last_use_ms(const std::string& key_id) const {
    const auto found = uses_.find(key_id);
    return found == uses_.end() ? 0 : found->second.at_ms;
}

bool Directory::may_manage(const Caller& caller, const ApiKey& key) const {
    if (key.uid == caller.user.uid) {
        return true;
    }
    const auto owner = find_user(key.uid);
    return caller.is_admin() && (!owner || owner->role <= caller.user.role);
}

std::vector<ApiKey> Directory::keys_for(const Caller& caller, std::string_view uid) const {
    std::vector<ApiKey> out;
    for (const auto& [id, key] : keys_) {
        if ((uid.empty() || key.uid == uid) && may_manage(caller, key)) {
            out.push_back(key);
        }
    }
    std::ranges::sort(out, [](const ApiKey& a, const ApiKey& b) {
        return std::tie(b.created_ms, a.name, a.id) < std::tie(a.created_ms, b.name, b.id);
    });
    return out;
}

base::Result<ApiKey> Directory::key_for(const Caller& caller, const std::string& id) const {
    const auto found = keys_.find(id);
    if (found == keys_.end() || !may_manage(caller, found->second)) {
        return base::fail(base::ErrorKind::not_found, "key_not_found", "there is no such API key");
    }
    return found->second;
}

base::Task<Directory::Turn> Directory::turn() {
    while (changing_) {
        co_await turn_.wait(base::Deadline::never());  // the commit of who changes bounds it
    }
    changing_ = true;
    co_return Turn(*this);
}

base::Task<base::Result<void>> Directory::commit(AuditEntry audit, Change change) {
    std::function<base::Result<bool>(store::WriteTxn&)> write =
        [audit, change = std::move(change)](store::WriteTxn& txn) -> base::Result<bool> {
        change(txn);
        put_audit(txn, audit);
        return true;
    };
    const auto written = co_await store_.write<bool>(std::move(write));
    if (!written) {
        co_return std::unexpected(written.error());
    }
    log_audit(log_, audit);
    co_return base::Result<void>{};
}

}  // namespace ars::people
