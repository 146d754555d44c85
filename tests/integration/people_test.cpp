// Users, keys, acting for others, rates and the audit log of the real server.
#include "tests/support/server.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace ars::tests {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr const char* kEcho = "agent: main\nturns:\n  - text: \"done\"\n";
constexpr const char* kSettings = R"(users:
  - {uid: root, role: superadmin, department: hq}
  - {uid: adam, role: admin, department: hq}
  - {uid: alice, role: user, department: research}
  - {uid: orch, role: user}
api_keys:
  - {name: r, uid: root, key_env: KEY_ROOT}
  - {name: d, uid: adam, key_env: KEY_ADAM}
  - {name: a, uid: alice, key_env: KEY_ALICE}
  - {name: o, uid: orch, key_env: KEY_ORCH, act_for: ["*"]}
  - {name: slow, uid: alice, key_env: KEY_SLOW, rate_limit: {requests: 3, per: 1h}}
)";

Headers bearer(const std::string& secret) { return {{"Authorization", "Bearer " + secret}}; }

std::string file_text(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream out;
    out << file.rdbuf();
    return out.str();
}

class People : public ::testing::Test {
  protected:
    void SetUp() override {
        server_.write("scripts/echo.yaml", kEcho);
        server_.add_settings(kSettings);
        start();
    }
    void start() {
        std::map<std::string, std::string> environment;
        for (const char* name : {"ROOT", "ADAM", "ALICE", "ORCH", "SLOW"}) {
            environment["KEY_" + std::string(name)] = secret_of(name);
        }
        server_.start(environment);
    }
    static std::string secret_of(const std::string& name) { return name + "-has-a-secret-key"; }
    static Headers as(const std::string& name) { return bearer(secret_of(name)); }
    static Headers acting_for(const std::string& uid) {
        Headers headers = as("ORCH");
        headers["X-Acting-For"] = uid;
        return headers;
    }

    HttpReply get(const std::string& path, const Headers& who) {
        return http(server_.port(), "GET", path, {}, who);
    }
    HttpReply send(
        const std::string& method, const std::string& path, json::value body, const Headers& who
    ) {
        return http_json(server_.port(), method, path, body, who);
    }
    HttpReply erase(const std::string& path, const Headers& who) {
        return http(server_.port(), "DELETE", path, {}, who);
    }
    struct Key {
        std::string id;
        std::string secret;
    };
    Key make_key(const Headers& who, json::object body) {
        const HttpReply reply = send("POST", "/api/user/apikey", std::move(body), who);
        EXPECT_EQ(reply.status, 201) << reply.body;
        const json::value made = reply.json();
        return {
            std::string(made.at("api_key").at("id").as_string()),
            std::string(made.at("secret").as_string())
        };
    }
    // "200", or the status and the code: "403 admins_only".
    static std::string outcome(const HttpReply& reply) {
        const std::string status = std::to_string(reply.status);
        if (reply.status < 300) {
            return status;
        }
        return status + " " + std::string(reply.json().at("detail").at("code").as_string());
    }
    int me(const std::string& secret) { return get("/api/user/me", bearer(secret)).status; }
    std::vector<json::object> audit(const std::string& query = "") {
        const HttpReply reply = get("/api/system/audit" + query, as("ROOT"));
        EXPECT_EQ(reply.status, 200) << reply.body;
        EXPECT_EQ(reply.headers.at("content-type"), "application/x-ndjson");
        std::vector<json::object> lines;
        std::istringstream text(reply.body);
        for (std::string line; std::getline(text, line);) {
            lines.push_back(json::parse(line).as_object());
        }
        return lines;
    }
    std::string actions() {
        std::string out;
        for (const json::object& line : audit()) {
            out += std::string(line.at("action").as_string()) + " ";
        }
        return out;
    }

    Server server_;
};

TEST_F(People, AKeyIsShownOnceAndLiesHashedOnTheDisk) {
    const Key key = make_key(as("ALICE"), {{"name", "laptop"}});
    EXPECT_EQ(me(key.secret), 200);
    for (const std::string& path :
         {std::string("/api/user/apikey"),
          std::string("/api/user/apikey/"),
          "/api/user/apikey/" + key.id}) {
        const HttpReply reply = get(path, as("ALICE"));
        EXPECT_EQ(reply.status, 200) << path;
        EXPECT_NE(reply.body.find(key.id), std::string::npos) << path;
        EXPECT_EQ(reply.body.find(key.secret), std::string::npos) << path;
        EXPECT_EQ(reply.body.find("sha256"), std::string::npos) << path;
    }
    EXPECT_EQ(server_.stop(), 0);
    bool record_found = false;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(server_.data_dir())) {
        if (entry.is_regular_file()) {
            const std::string bytes = file_text(entry.path());
            EXPECT_EQ(bytes.find(key.secret), std::string::npos) << entry.path();
            EXPECT_EQ(bytes.find(key.secret.substr(13)), std::string::npos) << entry.path();
            record_found = record_found || bytes.find(key.id) != std::string::npos;
        }
    }
    EXPECT_TRUE(record_found) << "the records were not looked at";
    EXPECT_EQ(server_.log().find(key.secret), std::string::npos);
}

TEST_F(People, ARepeatedRequestGivesTheKeyWithoutItsSecret) {
    const json::object body{{"name", "ci"}, {"request_id", "request-1"}};
    const Key key = make_key(as("ALICE"), body);
    server_.kill();
    start();
    const HttpReply again = send("POST", "/api/user/apikey/", body, as("ALICE"));
    EXPECT_EQ(again.status, 200);
    EXPECT_EQ(again.json().at("api_key").at("id"), json::value(key.id));
    EXPECT_TRUE(again.json().at("secret").is_null());
    json::object other = body;
    other["name"] = "cd";
    EXPECT_EQ(
        outcome(send("POST", "/api/user/apikey", other, as("ALICE"))), "409 request_id_conflict"
    );
    EXPECT_EQ(actions(), "key.create ");
}

TEST_F(People, AKeySurvivesAKillRightAfterTheAnswer) {
    const Key key = make_key(as("ALICE"), {{"name", "laptop"}});
    server_.kill();
    start();
    EXPECT_EQ(me(key.secret), 200);
    EXPECT_EQ(actions(), "key.create ");
}

TEST_F(People, DisabledRevokedAndExpiredKeysAre401) {
    const Key key = make_key(as("ALICE"), {{"name", "laptop"}});
    const std::string path = "/api/user/apikey/" + key.id;
    EXPECT_EQ(outcome(send("PUT", path, {{"enabled", false}}, as("ALICE"))), "200");
    const HttpReply refused = get("/api/user/me", bearer(key.secret));
    EXPECT_EQ(outcome(refused), "401 invalid_key");
    EXPECT_EQ(refused.headers.at("www-authenticate"), "Bearer");
    EXPECT_EQ(outcome(send("PUT", path, {{"enabled", true}}, as("ALICE"))), "200");
    EXPECT_EQ(me(key.secret), 200);
    EXPECT_EQ(
        outcome(send("PUT", path, {{"expires_at", "2020-01-01"}}, as("ALICE"))), "422 expired"
    );
    EXPECT_EQ(
        outcome(send("PUT", path, {{"expires_at", "soon"}}, as("ALICE"))), "422 invalid_request"
    );
    // In a moment, as the server's own clock writes it.
    const auto soon = std::chrono::system_clock::now() + 1500ms;
    const std::time_t seconds = std::chrono::system_clock::to_time_t(soon) + 1;
    std::tm utc{};
    ::gmtime_r(&seconds, &utc);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    EXPECT_EQ(outcome(send("PUT", path, {{"expires_at", text}}, as("ALICE"))), "200");
    const auto until = std::chrono::steady_clock::now() + 30s;
    while (me(key.secret) != 401 && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(20ms);
    }
    EXPECT_EQ(me(key.secret), 401);
    EXPECT_EQ(outcome(send("PUT", path, {{"expires_at", nullptr}}, as("ALICE"))), "200");
    EXPECT_EQ(me(key.secret), 200);

    EXPECT_EQ(outcome(erase(path, as("ALICE"))), "200");
    EXPECT_EQ(me(key.secret), 401);
    const HttpReply tombstone = get(path, as("ALICE"));
    EXPECT_TRUE(tombstone.json().at("api_key").at("revoked_at").is_string());
    EXPECT_EQ(outcome(send("PUT", path, {{"enabled", true}}, as("ALICE"))), "409 key_revoked");
    server_.kill();
    start();
    EXPECT_EQ(me(key.secret), 401);
}

TEST_F(People, LastUseSurvivesARestart) {
    const Key key = make_key(as("ALICE"), {{"name", "laptop"}});
    const Key idle = make_key(as("ALICE"), {{"name", "never used"}});
    EXPECT_EQ(me(key.secret), 200);
    const auto last_use = [&](const std::string& id) {
        return get("/api/user/apikey/" + id, as("ROOT")).json().at("api_key").at("last_used_at");
    };
    const json::value used = last_use(key.id);
    EXPECT_TRUE(used.is_string());
    EXPECT_EQ(server_.stop(), 0);
    start();
    EXPECT_EQ(last_use(key.id), used);
    EXPECT_TRUE(last_use(idle.id).is_null());
    const json::value listed = get("/api/user/apikey?user_id=alice", as("ROOT")).json();
    for (const json::value& shown : listed.at("api_keys").as_array()) {
        if (shown.at("name") == "r") {
            EXPECT_TRUE(shown.at("last_used_at").is_string());
        }
    }
}

TEST_F(People, ForeignKeysAreMissingAndDeclaredOnesLocked) {
    const Key key = make_key(as("ROOT"), {{"name", "root's"}});
    const std::string path = "/api/user/apikey/" + key.id;
    for (const char* who : {"ALICE", "ADAM"}) {
        EXPECT_EQ(outcome(get(path, as(who))), "404 key_not_found");
        EXPECT_EQ(outcome(erase(path, as(who))), "404 key_not_found");
        EXPECT_EQ(outcome(send("PUT", path, {{"name", "x"}}, as(who))), "404 key_not_found");
    }
    EXPECT_EQ(me(key.secret), 200);
    // Of a user up to his own role an administrator manages the keys.
    const Key alices = make_key(as("ADAM"), {{"name", "for alice"}, {"user_id", "alice"}});
    EXPECT_EQ(get("/api/user/me", bearer(alices.secret)).json().at("uid"), json::value("alice"));
    EXPECT_EQ(outcome(erase("/api/user/apikey/" + alices.id, as("ADAM"))), "200");
    EXPECT_EQ(
        outcome(send("POST", "/api/user/apikey", {{"name", "x"}, {"user_id", "root"}}, as("ADAM"))),
        "403 role_too_low"
    );
    EXPECT_EQ(
        outcome(send("POST", "/api/user/apikey", {{"name", "x"}, {"user_id", "adam"}}, as("ALICE"))
        ),
        "403 admins_only"
    );
    const json::value own = get("/api/user/apikey", as("ORCH")).json();
    EXPECT_EQ(own.at("total"), 1);
    const json::value& declared = own.at("api_keys").at(0);
    EXPECT_EQ(declared.at("source"), "config");
    const std::string locked = "/api/user/apikey/" + std::string(declared.at("id").as_string());
    const HttpReply refused = erase(locked, as("ORCH"));
    EXPECT_EQ(outcome(refused), "409 key_locked");
    EXPECT_NE(refused.body.find("appliance.yaml"), std::string::npos) << refused.body;
}

TEST_F(People, UsersAreManagedByThoseAboveThem) {
    const std::string users = "/api/system/users";
    EXPECT_EQ(outcome(get(users, as("ALICE"))), "403 admins_only");
    EXPECT_EQ(outcome(send("POST", users, {{"uid", "bob"}}, as("ALICE"))), "403 admins_only");
    EXPECT_EQ(
        outcome(send("POST", users, {{"uid", "bob"}, {"role", "superadmin"}}, as("ADAM"))),
        "403 role_too_low"
    );
    EXPECT_EQ(
        outcome(send("POST", users, {{"uid", "bob"}, {"role", "king"}}, as("ADAM"))),
        "422 invalid_request"
    );
    const json::object bob{{"uid", "bob/../x"}, {"role", "user"}, {"department", "sales"}};
    EXPECT_EQ(outcome(send("POST", users, bob, as("ADAM"))), "201");
    EXPECT_EQ(outcome(send("POST", users, bob, as("ADAM"))), "409 user_exists");
    const std::string path = users + "/bob%2F..%2Fx";
    EXPECT_EQ(get(path, as("ADAM")).json().at("user").at("department"), "sales");
    EXPECT_EQ(outcome(send("PUT", path, {{"role", "admin"}}, as("ADAM"))), "200");
    EXPECT_EQ(outcome(send("PUT", path, {{"role", "superadmin"}}, as("ADAM"))), "403 role_too_low");
    EXPECT_EQ(
        outcome(send("PUT", users + "/root", {{"role", "user"}}, as("ADAM"))), "409 user_locked"
    );
    EXPECT_EQ(outcome(erase(users + "/adam", as("ADAM"))), "409 user_locked");
    const json::value list = get(users + "?limit=2&offset=2", as("ROOT")).json();
    EXPECT_EQ(list.at("total"), 5);
    EXPECT_EQ(list.at("users").as_array().size(), 2U);
    EXPECT_EQ(list.at("users").at(0).at("uid"), "bob/../x");

    // He is an administrator now, and keeps what he has done when he is gone.
    const Key key = make_key(as("ROOT"), {{"name", "bob's"}, {"user_id", "bob/../x"}});
    const json::object run = server_.submit("main", "go", bearer(key.secret));
    server_.wait_for_end(std::string(run.at("run_id").as_string()), bearer(key.secret));
    EXPECT_EQ(outcome(erase(path, bearer(key.secret))), "409 own_user");
    EXPECT_EQ(outcome(erase(path, as("ADAM"))), "200");
    EXPECT_EQ(me(key.secret), 401);
    EXPECT_EQ(outcome(get(path, as("ROOT"))), "404 user_not_found");
    EXPECT_EQ(actions(), "user.create user.update key.create user.delete ");
    server_.kill();
    start();
    EXPECT_EQ(me(key.secret), 401);
    EXPECT_EQ(outcome(get(path, as("ROOT"))), "404 user_not_found");
}

TEST_F(People, AnOrchestratorActsForOthersWithinItsRole) {
    const HttpReply who = get("/api/user/me", acting_for("alice"));
    EXPECT_EQ(who.json().at("uid"), "alice");
    EXPECT_EQ(who.json().at("department"), "research");
    EXPECT_EQ(who.json().at("acting_key").at("user_id"), "orch");
    EXPECT_EQ(outcome(get("/api/user/me", acting_for("nobody"))), "403 unknown_user");
    EXPECT_EQ(outcome(get("/api/user/me", acting_for("adam"))), "403 acting_not_allowed");
    Headers without = as("ALICE");
    without["X-Acting-For"] = "orch";
    EXPECT_EQ(outcome(get("/api/user/me", without)), "403 acting_not_allowed");
    EXPECT_EQ(
        outcome(send("POST", "/api/user/apikey", {{"name", "x"}}, acting_for("alice"))),
        "403 acting_not_allowed"
    );
    // What it starts is Alice's, and nobody else's.
    const json::object run = server_.submit("main", "go", acting_for("alice"));
    const std::string id(run.at("run_id").as_string());
    EXPECT_EQ(server_.wait_for_end(id, as("ALICE")).at("status"), "completed");
    const std::string path = "/api/agent/runs/" + id;
    EXPECT_EQ(get(path, as("ALICE")).status, 200);
    EXPECT_EQ(get(path, acting_for("alice")).status, 200);
    EXPECT_EQ(get(path, as("ORCH")).status, 404);
    EXPECT_TRUE(std::filesystem::exists(server_.workspace("alice")));
    EXPECT_FALSE(std::filesystem::exists(server_.workspace("orch")));
    EXPECT_EQ(audit().size(), 0U);
}

// A role gives rights over agents and people, not into what others do.
TEST_F(People, AdministratorsDoNotSeeOthersRunsAndThreads) {
    const json::object run = server_.submit("main", "go", as("ALICE"));
    const std::string id(run.at("run_id").as_string());
    const std::string thread(run.at("thread_id").as_string());
    server_.wait_for_end(id, as("ALICE"));
    for (const char* who : {"ADAM", "ROOT"}) {
        for (const std::string& path :
             {"/api/agent/runs/" + id,
              "/api/agent/runs/" + id + "/events",
              "/api/chat/thread/" + thread,
              "/api/chat/thread/" + thread + "/history",
              "/api/chat/thread/" + thread + "/state",
              "/api/viewer/filesystem/tree?path=/&thread_id=" + thread}) {
            EXPECT_EQ(get(path, as("ALICE")).status, 200) << path;
            EXPECT_EQ(get(path, as(who)).status, 404) << who << " " << path;
        }
        EXPECT_EQ(erase("/api/chat/thread/" + thread, as(who)).status, 404);
        const json::value threads = get("/api/chat/threads", as(who)).json();
        EXPECT_TRUE(threads.at("threads").as_array().empty());
    }
}

TEST_F(People, OverItsRateAKeyIsToldWhenToComeBack) {
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(me(secret_of("SLOW")), 200);
    }
    const HttpReply refused = get("/api/user/me", as("SLOW"));
    EXPECT_EQ(outcome(refused), "429 rate_limited");
    EXPECT_GE(std::stoi(refused.headers.at("retry-after")), 1);
    EXPECT_LE(std::stoi(refused.headers.at("retry-after")), 1200);
    for (const char* path :
         {"/api/system/health", "/api/system/ready", "/api/system/discovery", "/openapi.json"}) {
        const int status = get(path, as("SLOW")).status;
        EXPECT_TRUE(status == 200 || status == 503) << path << " " << status;  // ready may be later
    }
    EXPECT_EQ(me(secret_of("ALICE")), 200);  // another key of the same user
}

TEST_F(People, AKeyThatAReloadTakesAwayStopsAtOnce) {
    EXPECT_EQ(me(secret_of("ALICE")), 200);
    std::string config = file_text(server_.config_path());
    const std::string line = "  - {name: a, uid: alice, key_env: KEY_ALICE}\n";
    const std::size_t at = config.find(line);
    ASSERT_NE(at, std::string::npos);
    server_.write("appliance.yaml", config.erase(at, line.size()));
    EXPECT_EQ(me(secret_of("ALICE")), 200);
    EXPECT_EQ(send("POST", "/api/system/reload", json::object(), as("ROOT")).status, 200);
    EXPECT_EQ(me(secret_of("ALICE")), 401);
    EXPECT_EQ(me(secret_of("ROOT")), 200);
}

TEST_F(People, EachChangeLeavesOneLineAndARefusedOneNone) {
    const std::string users = "/api/system/users";
    send("POST", users, {{"uid", "bob"}}, as("ADAM"));
    send("PUT", users + "/bob", {{"department", "sales"}}, as("ADAM"));
    const Key key = make_key(as("ROOT"), {{"name", "bob's"}, {"user_id", "bob"}});
    send("PUT", "/api/user/apikey/" + key.id, {{"name", "of bob"}}, bearer(key.secret));
    erase("/api/user/apikey/" + key.id, as("ADAM"));
    erase(users + "/bob", as("ADAM"));
    const auto lines = audit();
    EXPECT_EQ(actions(), "user.create user.update key.create key.update key.revoke user.delete ");
    ASSERT_EQ(lines.size(), 6U);
    EXPECT_EQ(lines[0].at("actor"), "adam");
    EXPECT_EQ(lines[0].at("key"), "d");
    EXPECT_EQ(lines[0].at("target"), "bob");
    EXPECT_EQ(lines[2].at("detail").at("user_id"), "bob");
    EXPECT_EQ(lines[3].at("actor"), "bob");
    EXPECT_EQ(lines[3].at("key"), "bob's");
    for (const json::object& line : lines) {
        EXPECT_EQ(json::serialize(line).find(key.secret.substr(13)), std::string::npos);
    }
    // The log says the same.
    std::size_t logged = 0;
    std::istringstream log(server_.log());
    for (std::string line; std::getline(log, line);) {
        logged += line.find("\"audit\"") != std::string::npos ? 1 : 0;
    }
    EXPECT_EQ(logged, 6U) << server_.log();

    send("POST", users, {{"uid", "alice"}}, as("ROOT"));
    send("POST", users, {{"uid", "carl"}}, as("ALICE"));
    send("PUT", users + "/nobody", {{"role", "user"}}, as("ROOT"));
    send("POST", "/api/user/apikey", {{"name", "x"}, {"user_id", "root"}}, as("ADAM"));
    erase("/api/user/apikey/" + key.id, as("ROOT"));  // revoked already
    EXPECT_EQ(audit().size(), 6U);
    const auto page = audit("?after=2&limit=2");
    ASSERT_EQ(page.size(), 2U);
    EXPECT_EQ(page[0].at("seq"), 3);
    EXPECT_EQ(outcome(get("/api/system/audit", as("ALICE"))), "403 admins_only");
    server_.kill();
    start();
    EXPECT_EQ(audit().size(), 6U);
}

TEST(PeopleWithoutKeys, TheFirstKeyIsMadeInTheConfiguration) {
    Server server;
    server.write("scripts/echo.yaml", kEcho);
    server.start();
    const HttpReply who = http(server.port(), "GET", "/api/user/me");
    EXPECT_EQ(who.json().at("uid"), "local");
    EXPECT_TRUE(who.json().at("key_name").is_null());
    const HttpReply refused =
        http_json(server.port(), "POST", "/api/user/apikey", json::object{{"name", "first"}});
    EXPECT_EQ(refused.status, 409);
    EXPECT_NE(refused.body.find("appliance.yaml"), std::string::npos) << refused.body;
    EXPECT_EQ(http(server.port(), "GET", "/api/user/me").status, 200);
}

}  // namespace
}  // namespace ars::tests
