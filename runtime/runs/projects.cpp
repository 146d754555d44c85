#include "runtime/runs/projects.hpp"

#include "base/clock.hpp"
#include "base/digest.hpp"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <tuple>

namespace ars::runs {

namespace json = boost::json;

namespace {

constexpr std::string_view kUuid = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

// A uid may be longer than a key of the store.
std::string keys_of(const std::string& uid) { return "project/" + base::sha256_hex(uid) + "/"; }
std::string key_of_thread(const std::string& thread_id) { return "thread-project/" + thread_id; }

std::string encode(const Project& project) {
    return json::serialize(json::object{
        {"id", project.id},
        {"uid", project.uid},
        {"name", project.name},
        {"workdir_path", project.workdir_path},
        {"request_id", project.request_id},
        {"created_ms", project.created_ms}
    });
}

Project decode(std::string_view text) {
    const json::value value = json::parse(text);
    const auto at = [&value](const char* key) { return std::string(value.at(key).as_string()); };
    return {
        at("id"),
        at("uid"),
        at("name"),
        at("workdir_path"),
        at("request_id"),
        value.at("created_ms").to_number<std::int64_t>()
    };
}

}  // namespace

std::vector<Project> projects_of(const store::ReadTxn& txn, const std::string& uid) {
    std::vector<Project> out;
    for (const auto& entry : txn.entries(keys_of(uid))) {
        out.push_back(decode(entry.value));
    }
    std::ranges::sort(out, {}, [](const Project& project) {
        return std::tie(project.created_ms, project.id);
    });
    return out;
}

base::Result<Project> find_project(
    const store::ReadTxn& txn, const std::string& uid, const std::string& id
) {
    const std::string key = keys_of(uid) + id;
    if (key.size() <= store::kEntryKeyBytes) {
        if (const auto found = txn.entry(key)) {
            return decode(*found);
        }
    }
    return base::fail(base::ErrorKind::not_found, "project_not_found", "there is no such project");
}

base::Result<Project> write_project(store::WriteTxn& txn, Project wanted) {
    const std::vector<Project> known = projects_of(txn, wanted.uid);
    const auto same = std::ranges::find(known, wanted.request_id, &Project::request_id);
    if (same != known.end()) {
        if (same->name == wanted.name && same->workdir_path == wanted.workdir_path) {
            return *same;
        }
        return base::fail(
            base::ErrorKind::conflict,
            "request_id_conflict",
            "this request_id was used for a different request; use a new one"
        );
    }
    if (known.size() >= kProjectsOfUser) {
        return base::fail(
            base::ErrorKind::exhausted,
            "too_many_projects",
            "a user has at most " + std::to_string(kProjectsOfUser) + " projects"
        );
    }
    wanted.id = base::random_uuid();
    wanted.created_ms = base::now_ms();
    txn.put_entry(keys_of(wanted.uid) + wanted.id, encode(wanted));
    return wanted;
}

void put_project_of_thread(
    store::WriteTxn& txn, const std::string& thread_id, const std::string& project_id
) {
    if (!project_id.empty()) {
        txn.put_entry(key_of_thread(thread_id), project_id);
    }
}

std::string project_of_thread(const store::ReadTxn& txn, const store::ThreadRecord& thread) {
    const auto root = thread.root != thread.no ? txn.thread(thread.root) : std::nullopt;
    return txn.entry(key_of_thread(root ? root->id : thread.id)).value_or("");
}

std::string new_managed_workdir() { return std::string(kManagedWorkdirs) + base::random_uuid(); }

bool is_managed_workdir(std::string_view workdir_path) {
    if (!workdir_path.starts_with(kManagedWorkdirs)) {
        return false;
    }
    const std::string_view id = workdir_path.substr(kManagedWorkdirs.size());
    const auto fits = [](char c, char form) {
        const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
        return form == '-' ? c == '-' : hex;
    };
    return id.size() == kUuid.size() && std::equal(id.begin(), id.end(), kUuid.begin(), fits);
}

}  // namespace ars::runs
