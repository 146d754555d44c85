// Users and keys made by API, as they stand in the store.
#pragma once

#include "base/result.hpp"
#include "runtime/people/api_key.hpp"
#include "runtime/people/user.hpp"
#include "runtime/store/store.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace ars::people {

struct UserEntry {
    User user;
    std::string created_by;
    std::int64_t created_ms = 0;  // 0 of a declared one
    std::int64_t updated_ms = 0;
    bool declared = false;  // stands in the configuration file
};

void put_user(store::WriteTxn& txn, const UserEntry& entry);
void erase_user(store::WriteTxn& txn, const std::string& uid);
void put_key(store::WriteTxn& txn, const ApiKey& key);
void erase_key(store::WriteTxn& txn, const std::string& id);
// When a key was last used, beside the key: it is written at other times, by nobody's request.
void put_last_use(store::WriteTxn& txn, const std::string& key_id, std::int64_t at_ms);
void erase_last_use(store::WriteTxn& txn, const std::string& key_id);

struct StoredPeople {
    std::map<std::string, UserEntry> users;            // by uid
    std::map<std::string, ApiKey> keys;                // by id
    std::map<std::string, std::int64_t> last_uses_ms;  // by the key's id
};
// Error "people_unreadable", which names the record: of a newer program, or damaged.
[[nodiscard]] base::Result<StoredPeople> load_people(const store::ReadTxn& txn);

}  // namespace ars::people
