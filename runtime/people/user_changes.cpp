// Users made, changed and removed by API.
#include "base/clock.hpp"
#include "runtime/people/directory.hpp"

#include <algorithm>

namespace ars::people {

namespace json = boost::json;

namespace {

json::object user_detail(const User& user) {
    return {{"role", to_string(user.role)}, {"department", user.department}};
}

base::Result<void> check_admin(const Caller& caller) {
    if (!caller.is_admin()) {
        return base::fail(
            base::ErrorKind::forbidden, "admins_only", "only administrators manage users"
        );
    }
    return {};
}

base::Result<void> check_role(const Caller& caller, UserRole role) {
    if (role > caller.user.role) {
        return base::fail(
            base::ErrorKind::forbidden,
            "role_too_low",
            std::string("the role ") + to_string(role) + " is above yours, which is " +
                to_string(caller.user.role)
        );
    }
    return {};
}

}  // namespace

base::Result<UserEntry> Directory::changeable_user(const Caller& caller, const std::string& uid)
    const {
    if (auto allowed = check_admin(caller); !allowed) {
        return std::unexpected(allowed.error());
    }
    auto entry = user_entry(uid);
    if (!entry) {
        return base::fail(
            base::ErrorKind::not_found, "user_not_found", "there is no user \"" + uid + "\""
        );
    }
    if (entry->declared) {
        return base::fail(
            base::ErrorKind::conflict,
            "user_locked",
            "the user \"" + uid + "\" stands in " + declaration_.file +
                ": change it there and reload"
        );
    }
    if (auto allowed = check_role(caller, entry->user.role); !allowed) {
        return std::unexpected(allowed.error());
    }
    return *entry;
}

base::Task<base::Result<UserEntry>> Directory::create_user(Caller caller, User user) {
    const Turn mine = co_await turn();
    if (auto allowed = check_admin(caller); !allowed) {
        co_return std::unexpected(allowed.error());
    }
    if (auto allowed = check_role(caller, user.role); !allowed) {
        co_return std::unexpected(allowed.error());
    }
    const auto there = user_entry(user.uid);
    // The local user need not be declared to be one.
    if (there || user.uid == local_user().uid) {
        const bool locked = !there || there->declared;
        co_return base::fail(
            base::ErrorKind::conflict,
            locked ? "user_locked" : "user_exists",
            "there is a user \"" + user.uid + "\" already" +
                (locked ? ", and " + declaration_.file + " decides about him" : std::string())
        );
    }
    if (one_user_) {
        co_return base::fail(
            base::ErrorKind::conflict,
            "one_user_only",
            "this server can mount nothing, so all files are one user's, and there may be no "
            "second user"
        );
    }
    if (users_.size() >= kMaxUsers) {
        co_return base::fail(
            base::ErrorKind::conflict,
            "too_many_users",
            "there are " + std::to_string(kMaxUsers) + " users: delete some"
        );
    }
    UserEntry entry;
    entry.user = std::move(user);
    entry.created_by = caller.user.uid;
    entry.created_ms = base::now_ms();
    entry.updated_ms = entry.created_ms;
    Change change = [entry](store::WriteTxn& txn) { put_user(txn, entry); };
    AuditEntry audit{caller, "user.create", entry.user.uid, user_detail(entry.user)};
    const auto written = co_await commit(std::move(audit), std::move(change));
    if (!written) {
        co_return std::unexpected(written.error());
    }
    users_[entry.user.uid] = entry;
    co_return entry;
}

base::Task<base::Result<UserEntry>> Directory::change_user(
    Caller caller, std::string uid, UserChange wanted
) {
    const Turn mine = co_await turn();
    auto entry = changeable_user(caller, uid);
    if (!entry) {
        co_return entry;
    }
    if (auto allowed = check_role(caller, wanted.role.value_or(UserRole::user)); !allowed) {
        co_return std::unexpected(allowed.error());
    }
    entry->user.role = wanted.role.value_or(entry->user.role);
    entry->user.department = wanted.department.value_or(entry->user.department);
    entry->updated_ms = base::now_ms();
    Change change = [entry = *entry](store::WriteTxn& txn) { put_user(txn, entry); };
    AuditEntry audit{caller, "user.update", uid, user_detail(entry->user)};
    const auto written = co_await commit(std::move(audit), std::move(change));
    if (!written) {
        co_return std::unexpected(written.error());
    }
    users_[uid] = *entry;
    co_return entry;
}

base::Task<base::Result<void>> Directory::delete_user(Caller caller, std::string uid) {
    const Turn mine = co_await turn();
    const auto entry = changeable_user(caller, uid);
    if (!entry) {
        co_return std::unexpected(entry.error());
    }
    if (uid == caller.user.uid || uid == caller.key_uid) {
        co_return base::fail(
            base::ErrorKind::conflict,
            "own_user",
            "nobody deletes himself: ask another administrator"
        );
    }
    std::vector<ApiKey> disabled;
    for (const auto& [id, key] : keys_) {
        if (key.uid == uid && !key.declared && key.enabled && key.revoked_ms == 0) {
            disabled.push_back(key);
            disabled.back().enabled = false;
        }
    }
    Change change = [uid, disabled](store::WriteTxn& txn) {
        erase_user(txn, uid);
        for (const ApiKey& key : disabled) {
            put_key(txn, key);
        }
    };
    AuditEntry audit{caller, "user.delete", uid, {{"disabled_keys", disabled.size()}}};
    const auto written = co_await commit(std::move(audit), std::move(change));
    if (!written) {
        co_return std::unexpected(written.error());
    }
    users_.erase(uid);
    for (const ApiKey& key : disabled) {
        keys_[key.id] = key;
    }
    index_keys();
    co_return base::Result<void>{};
}

}  // namespace ars::people
