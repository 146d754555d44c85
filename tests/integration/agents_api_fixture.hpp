// A server with four people, for tests of what they may do with agents.
#pragma once

#include "tests/support/server.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

namespace ars::tests {

namespace json = boost::json;
using namespace std::chrono_literals;

inline constexpr const char* kTalk = R"(agent: main
turns:
  - text: "an answer"
)";
inline constexpr const char* kSlow = R"(agent: main
when: {user_contains: "slow"}
turns:
  - tool_calls: [{id: nap, tool: execute, args: {command: "sleep 0.5; echo done >> effects"}}]
  - text: "did it"
)";

inline std::string text(const json::value& object, const char* key) {
    const json::value& found = object.at(key);
    return found.is_string() ? std::string(found.as_string()) : json::serialize(found);
}

inline std::string code_of(const HttpReply& reply) {
    const json::value detail = reply.json().at("detail");
    return detail.is_object() ? text(detail, "code") : json::serialize(detail);
}

class AgentsApi : public ::testing::Test {
  protected:
    AgentsApi() {
        server_.write("scripts/talk.yaml", kTalk);
        server_.write("scripts/slow.yaml", kSlow);
    }
    // alice and bob are plain users of one department, carol is an admin, root a superadmin.
    void start() {
        server_.add_settings(
            "users:\n"
            "  - {uid: alice, department: research}\n"
            "  - {uid: bob, department: research}\n"
            "  - {uid: carol, role: admin}\n"
            "  - {uid: root, role: superadmin}\n"
            "api_keys:\n"
            "  - {name: a, uid: alice, key_env: KEY_ALICE}\n"
            "  - {name: b, uid: bob, key_env: KEY_BOB}\n"
            "  - {name: c, uid: carol, key_env: KEY_CAROL}\n"
            "  - {name: r, uid: root, key_env: KEY_ROOT}\n"
        );
        start_again();
    }
    void start_again() {
        server_.start(
            {{"KEY_ALICE", key("alice")},
             {"KEY_BOB", key("bob")},
             {"KEY_CAROL", key("carol")},
             {"KEY_ROOT", key("root")}}
        );
    }
    static std::string key(const std::string& uid) { return uid + "-has-a-secret-key"; }
    static Headers as(const std::string& uid, Headers more = {}) {
        more["Authorization"] = "Bearer " + key(uid);
        return more;
    }
    HttpReply get(const std::string& uid, const std::string& path) {
        return http(server_.port(), "GET", "/api/agent" + path, {}, as(uid));
    }
    HttpReply call(
        const std::string& uid,
        const std::string& method,
        const std::string& path,
        const json::object& body = {},
        Headers headers = {}
    ) {
        return http_json(
            server_.port(), method, "/api/agent" + path, body, as(uid, std::move(headers))
        );
    }
    HttpReply make(const std::string& uid, json::object body) {
        return call(uid, "POST", "", body);
    }
    HttpReply reload(const std::string& uid = "carol") {
        return http(server_.port(), "POST", "/api/system/reload", {}, as(uid));
    }
    std::set<std::string> listed(const std::string& uid, const std::string& query = "") {
        std::set<std::string> out;
        const json::value body = get(uid, query).json();
        for (const json::value& agent : body.at("agents").as_array()) {
            out.insert(text(agent, "slug"));
        }
        return out;
    }

    void remove(const std::string& file) {
        std::filesystem::remove(std::filesystem::path(server_.config_path()).parent_path() / file);
    }

    Server server_;
};

}  // namespace ars::tests
