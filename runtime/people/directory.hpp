// All users and API keys: those declared in the configuration, which win, and those made by API,
// which are in the store. Everything is in memory; a change is committed first, with its line in
// the audit log. One I/O thread.
#pragma once

#include "base/async.hpp"
#include "base/log.hpp"
#include "base/result.hpp"
#include "base/task_group.hpp"
#include "runtime/people/api_key.hpp"
#include "runtime/people/audit.hpp"
#include "runtime/people/caller.hpp"
#include "runtime/people/records.hpp"
#include "runtime/store/store.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ars::people {

// Of each kind, made by API; a revoked key is remembered until its place is needed.
inline constexpr std::size_t kMaxUsers = 10'000;
inline constexpr std::size_t kMaxKeys = 10'000;

struct DeclaredKey {
    std::string name;
    std::string sha256;
    std::string uid;
    std::int64_t expires_ms = 0;  // 0 = never
    std::vector<std::string> act_for{};
    std::optional<RateLimit> rate_limit{};
};
struct Declaration {
    std::string file;  // named where a change by API is refused
    std::vector<User> users;
    std::vector<DeclaredKey> keys;
    std::optional<RateLimit> rate_limit{};  // of each key that has none of its own
};

// Who calls where no key is demanded: the first declared user, else "local", who may do everything.
[[nodiscard]] User local_user(const std::vector<User>& declared);

struct NewKey {
    std::string name;
    std::string request_id{};  // "" = none
    std::string uid{};         // whose it becomes; "" = the caller's
    std::int64_t expires_ms = 0;
    std::vector<std::string> act_for{};
};
struct CreatedKey {
    ApiKey key;
    std::string secret;  // "" when the request was a repeated one: it is shown once
};
struct KeyChange {
    std::optional<std::string> name{};
    std::optional<bool> enabled{};
    std::optional<std::int64_t> expires_ms{};  // 0 = never
};
struct UserChange {
    std::optional<UserRole> role{};
    std::optional<std::string> department{};
};

class Directory {
  public:
    // Reads what is stored. All references outlive this.
    [[nodiscard]] static base::Result<std::unique_ptr<Directory>> open(
        base::asio::any_io_executor executor,
        store::Store& store,
        const base::Log& log,
        Declaration declaration
    );
    Directory(const Directory&) = delete;
    Directory& operator=(const Directory&) = delete;

    // In place of what was declared before, from the next request on: keys that are gone are
    // refused. Error "one_user_only" changes nothing.
    [[nodiscard]] base::Result<void> declare(Declaration declaration);
    // From here on a second user is refused. Error "one_user_only" when there is one.
    [[nodiscard]] base::Result<void> restrict_to_one_user();

    // Writes down now and then when keys were last used.
    void start();
    base::Task<void> stop();

    // No key is demanded: there was neither a declared nor a usable stored one at the start, and no
    // reload declared any. A server that has demanded keys goes on with it until it ends, also when
    // the last one expires or is revoked: nobody opens it from within.
    [[nodiscard]] bool keyless() const { return keyless_; }
    [[nodiscard]] User local_user() const;

    [[nodiscard]] std::optional<User> find_user(std::string_view uid) const;
    // Ordered by uid.
    [[nodiscard]] std::vector<UserEntry> users(std::size_t offset, std::size_t limit) const;
    [[nodiscard]] std::size_t user_count() const;
    [[nodiscard]] std::optional<UserEntry> user_entry(std::string_view uid) const;

    // The key with this digest if it may be used now and its user exists; it counts as used.
    [[nodiscard]] const ApiKey* use_key(std::string_view sha256, std::int64_t now_ms);
    // Takes one request from the key's rate. How long to wait when there is none.
    [[nodiscard]] std::optional<std::chrono::milliseconds> take_request(
        const ApiKey& key, TokenBucket::TimePoint now
    );
    [[nodiscard]] std::int64_t last_use_ms(const std::string& key_id) const;  // 0 = never

    // Keys that the caller may see and change: his own, for administrators those of all users up to
    // their own role. Newest first, declared ones last; `uid` "" = everybody's.
    [[nodiscard]] std::vector<ApiKey> keys_for(const Caller& caller, std::string_view uid) const;
    // Not found "key_not_found" also for those of others.
    [[nodiscard]] base::Result<ApiKey> key_for(const Caller& caller, const std::string& id) const;

    // Changes of keys (key_changes.cpp). Errors beside those of the store: conflict "keyless",
    // "key_locked", "key_revoked", "request_id_conflict", "too_many_keys"; forbidden "admins_only",
    // "role_too_low", "acting_not_allowed"; not found "key_not_found", "user_not_found"; invalid
    // "expired".
    base::Task<base::Result<CreatedKey>> create_key(Caller caller, NewKey wanted);
    base::Task<base::Result<ApiKey>> change_key(Caller caller, std::string id, KeyChange change);
    // The key stays as a revoked one. Revoking it again changes nothing.
    base::Task<base::Result<ApiKey>> revoke_key(Caller caller, std::string id);

    // Changes of users, by administrators (user_changes.cpp). Errors: forbidden "admins_only",
    // "role_too_low"; conflict "user_locked", "user_exists", "own_user", "one_user_only",
    // "too_many_users"; not found "user_not_found".
    base::Task<base::Result<UserEntry>> create_user(Caller caller, User user);
    base::Task<base::Result<UserEntry>> change_user(
        Caller caller, std::string uid, UserChange change
    );
    // His keys are disabled; what he has done and his files stay.
    base::Task<base::Result<void>> delete_user(Caller caller, std::string uid);

  private:
    // Changes wait for each other, so that what one has checked is still so when it is committed.
    class Turn {
      public:
        explicit Turn(Directory& owner) : owner_(&owner) {}
        Turn(Turn&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)) {}
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;
        Turn& operator=(Turn&&) = delete;
        ~Turn() {
            if (owner_ != nullptr) {
                owner_->changing_ = false;
                owner_->turn_.notify_all();
            }
        }

      private:
        Directory* owner_;
    };
    // What happened to a key since it was last written down.
    struct KeyUse {
        std::int64_t at_ms = 0;
        bool written = true;
        TokenBucket bucket;
    };
    using Change = std::function<void(store::WriteTxn&)>;

    Directory(base::asio::any_io_executor executor, store::Store& store, const base::Log& log);
    void take_in(Declaration declaration);
    void index_keys();
    [[nodiscard]] bool may_manage(const Caller& caller, const ApiKey& key) const;
    base::Task<Turn> turn();
    // Commits the change together with its line in the audit log.
    base::Task<base::Result<void>> commit(AuditEntry audit, Change change);

    // key_changes.cpp
    [[nodiscard]] base::Result<void> check_new_key(const Caller& caller, const NewKey& wanted)
        const;
    [[nodiscard]] const ApiKey* key_of_request(
        const std::string& created_by, const std::string& request_id
    ) const;
    [[nodiscard]] std::optional<std::string> oldest_revoked() const;
    [[nodiscard]] base::Result<ApiKey> changeable_key(const Caller& caller, const std::string& id)
        const;
    void keep(const ApiKey& key);
    base::Task<void> write_uses_again_and_again();
    base::Task<void> write_uses();

    // user_changes.cpp
    [[nodiscard]] base::Result<UserEntry> changeable_user(
        const Caller& caller, const std::string& uid
    ) const;

    store::Store& store_;
    const base::Log& log_;
    Declaration declaration_;
    std::map<std::string, UserEntry, std::less<>> users_;     // made by API
    std::map<std::string, UserEntry, std::less<>> declared_;  // users
    std::map<std::string, ApiKey> keys_;                      // both kinds, by id
    std::unordered_map<std::string, const ApiKey*> by_digest_;
    std::map<std::string, KeyUse> uses_;  // of keys_, by id
    bool keyless_ = true;
    bool one_user_ = false;
    bool changing_ = false;
    base::Notifier turn_;
    base::TaskGroup tasks_;
};

}  // namespace ars::people
