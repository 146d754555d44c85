#include "runtime/people/records.hpp"

#include "base/fields.hpp"
#include "runtime/people/people_fields.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace ars::people {

namespace json = boost::json;

namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::string_view kUsers = "user/";
constexpr std::string_view kKeys = "key/";
constexpr std::string_view kUses = "key-use/";

std::string join(std::string_view prefix, std::string_view name) {
    return std::string(prefix) + std::string(name);
}

const base::Fields<UserEntry>& user_entry_fields() {
    static const base::Fields<UserEntry> fields =
        base::Fields<UserEntry>{}
            .object("user", &UserEntry::user, user_fields(), {.required = true})
            .text("created_by", &UserEntry::created_by)
            .integer("created_ms", &UserEntry::created_ms)
            .integer("updated_ms", &UserEntry::updated_ms);
    return fields;
}

const base::Fields<ApiKey>& key_fields() {
    static const base::Fields<ApiKey> fields =
        base::Fields<ApiKey>{}
            .text("id", &ApiKey::id, {.required = true})
            .text("name", &ApiKey::name)
            .text("sha256", &ApiKey::sha256, {.required = true})
            .text("prefix", &ApiKey::prefix)
            .text("uid", &ApiKey::uid, {.required = true})
            .text("created_by", &ApiKey::created_by)
            .text("request_id", &ApiKey::request_id)
            .text("intent", &ApiKey::intent)
            .texts("act_for", &ApiKey::act_for)
            .integer("created_ms", &ApiKey::created_ms)
            .integer("expires_ms", &ApiKey::expires_ms)
            .integer("revoked_ms", &ApiKey::revoked_ms)
            .boolean("enabled", &ApiKey::enabled);
    return fields;
}

struct LastUse {
    std::int64_t at_ms = 0;
};

const base::Fields<LastUse>& last_use_fields() {
    static const base::Fields<LastUse> fields =
        base::Fields<LastUse>{}.integer("at_ms", &LastUse::at_ms, {.required = true});
    return fields;
}

template <class T>
std::string to_text(const base::Fields<T>& fields, const T& value) {
    return json::serialize(json::object{{"version", kVersion}, {"record", fields.encode(value)}});
}

template <class T>
base::Result<T> from_text(
    const base::Fields<T>& fields, const std::string& key, const std::string& text
) {
    const auto unreadable = [&key](const std::string& why) {
        return base::fail(
            base::ErrorKind::internal,
            "people_unreadable",
            "the record \"" + key + "\" of the store can't be read: " + why
        );
    };
    boost::system::error_code error;
    const json::value value = json::parse(text, error);
    const json::object* const object = error ? nullptr : value.if_object();
    if (object == nullptr || !object->contains("record") || !object->contains("version")) {
        return unreadable("it is damaged; restore a backup");
    }
    if (object->at("version") != kVersion) {
        return unreadable("it is of a newer version of this program; start that one");
    }
    T out{};
    if (const auto faults = fields.decode(object->at("record"), out); !faults.empty()) {
        return unreadable(base::describe(faults.front()));
    }
    return out;
}

// Reads all records below `prefix` into `out`, by their names.
template <class T>
base::Result<void> load_all(
    const store::ReadTxn& txn,
    std::string_view prefix,
    const base::Fields<T>& fields,
    std::map<std::string, T>& out
) {
    for (const auto& entry : txn.entries(prefix, {}, SIZE_MAX)) {
        auto value = from_text(fields, entry.key, entry.value);
        if (!value) {
            return std::unexpected(value.error());
        }
        out[entry.key.substr(prefix.size())] = std::move(*value);
    }
    return {};
}

}  // namespace

void put_user(store::WriteTxn& txn, const UserEntry& entry) {
    txn.put_entry(join(kUsers, entry.user.uid), to_text(user_entry_fields(), entry));
}

void erase_user(store::WriteTxn& txn, const std::string& uid) {
    txn.erase_entry(join(kUsers, uid));
}

void put_key(store::WriteTxn& txn, const ApiKey& key) {
    txn.put_entry(join(kKeys, key.id), to_text(key_fields(), key));
}

void erase_key(store::WriteTxn& txn, const std::string& id) { txn.erase_entry(join(kKeys, id)); }

void put_last_use(store::WriteTxn& txn, const std::string& key_id, std::int64_t at_ms) {
    txn.put_entry(join(kUses, key_id), to_text(last_use_fields(), LastUse{at_ms}));
}

void erase_last_use(store::WriteTxn& txn, const std::string& key_id) {
    txn.erase_entry(join(kUses, key_id));
}

base::Result<StoredPeople> load_people(const store::ReadTxn& txn) {
    StoredPeople out;
    std::map<std::string, LastUse> uses;
    for (const auto& loaded :
         {load_all(txn, kUsers, user_entry_fields(), out.users),
          load_all(txn, kKeys, key_fields(), out.keys),
          load_all(txn, kUses, last_use_fields(), uses)}) {
        if (!loaded) {
            return std::unexpected(loaded.error());
        }
    }
    for (const auto& [id, use] : uses) {
        out.last_uses_ms[id] = use.at_ms;
    }
    return out;
}

}  // namespace ars::people
