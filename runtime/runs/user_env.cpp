#include "runtime/runs/user_env.hpp"

#include "base/digest.hpp"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace ars::runs {

namespace json = boost::json;

namespace {

// A uid may be longer than a key of the store.
std::string key_of(const std::string& uid) { return "env/" + base::sha256_hex(uid); }

}  // namespace

Variables user_variables(const store::ReadTxn& txn, const std::string& uid) {
    Variables out;
    if (const auto stored = txn.entry(key_of(uid))) {
        for (const auto& entry : json::parse(*stored).as_object()) {
            out[std::string(entry.key())] = std::string(entry.value().as_string());
        }
    }
    return out;
}

base::Task<base::Result<void>> write_user_variables(
    store::Store& store, std::string uid, Variables variables
) {
    json::object values;
    for (const auto& [name, value] : variables) {
        values[name] = value;
    }
    std::function<base::Result<bool>(store::WriteTxn&)> change =
        [key = key_of(uid),
         text = json::serialize(values),
         none = values.empty()](store::WriteTxn& txn) -> base::Result<bool> {
        if (none) {
            txn.erase_entry(key);
        } else {
            txn.put_entry(key, text);
        }
        return true;
    };
    const auto written = co_await store.write<bool>(std::move(change));
    co_return written ? base::Result<void>() : std::unexpected(written.error());
}

std::shared_ptr<const UserEnv> make_user_env(Variables variables, base::Redactor of_configuration) {
    auto env = std::make_shared<UserEnv>(std::move(variables), std::move(of_configuration));
    for (const auto& [name, value] : env->variables) {
        env->secrets.add(name, value);
    }
    return env;
}

}  // namespace ars::runs
