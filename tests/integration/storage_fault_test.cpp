// The disk or the store fails under the real server: whoever asks is told why and what helps,
// nothing is half there, what is stored stays readable, and the work goes on when there is room.
#include "tests/support/model_server.hpp"
#include "tests/support/server.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ars::tests {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

// "hold": a tool that waits for the file `go` and then has an effect, and a result that finds no
// room in pages that were given back.
constexpr const char* kHold = R"(agent: main
when: {user_contains: "hold"}
turns:
  - tool_calls:
      - id: wait
        tool: execute
        args:
          command: "touch held; until [ -e go ]; do sleep 0.02; done; head -c 200000 /dev/zero | tr '\\0' y; echo did >> effects"
  - text: "released"
)";
constexpr const char* kOther = R"(agent: main
turns:
  - text: "answered"
)";
constexpr int kGem = 1000;

std::string text(const json::object& object, const char* key) {
    return std::string(object.at(key).as_string());
}

// A file system of a few MiB in the place of the store's directory, seen by this process and what
// it starts. Only root can make one.
class SmallDisk {
  public:
    SmallDisk(const std::string& place, const std::string& options) : place_(place) {
        const std::filesystem::path data = std::filesystem::path(place).parent_path();
        std::filesystem::create_directories(place);
        static const bool apart = ::unshare(CLONE_NEWNS) == 0 &&
                                  ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, "") == 0;
        const std::string all = options + ",mode=700,uid=1000,gid=1000";
        mounted_ = apart && ::chown(data.c_str(), kGem, kGem) == 0 &&
                   ::mount("none", place.c_str(), "tmpfs", 0, all.c_str()) == 0;
    }
    SmallDisk(const SmallDisk&) = delete;
    SmallDisk& operator=(const SmallDisk&) = delete;
    ~SmallDisk() {
        if (mounted_) {
            ::umount2(place_.c_str(), MNT_DETACH);
        }
    }
    [[nodiscard]] bool mounted() const { return mounted_; }
    [[nodiscard]] bool make_read_only() const {
        return ::mount("none", place_.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) == 0;
    }
    // Takes all that is left, and gives it back.
    [[nodiscard]] std::string ballast() const { return place_ + "/ballast"; }
    void fill() const {
        std::ofstream out(ballast(), std::ios::app);
        const std::string piece(4096, 'b');
        while (out.write(piece.data(), static_cast<std::streamsize>(piece.size())).flush()) {
        }
    }
    void free() const { std::filesystem::remove(ballast()); }

  private:
    std::string place_;
    bool mounted_ = false;
};

#define NEEDS_MOUNT(disk)                                                                  \
    if (!(disk).mounted()) {                                                               \
        GTEST_SKIP() << "STORAGE FAULT NOT TESTED: no right to mount a small file system " \
                        "here; run the tests as root";                                     \
    }

class StorageFault : public ::testing::Test {
  protected:
    StorageFault() {
        server_.write("scripts/hold.yaml", kHold);
        server_.write("scripts/other.yaml", kOther);
    }

    HttpReply send(const std::string& query, const std::string& request_id = {}) {
        json::object body{{"agent_slug", "main"}, {"query", query}};
        if (!request_id.empty()) {
            body["request_id"] = request_id;
        }
        return http_json(server_.port(), "POST", "/api/agent/runs", body);
    }
    HttpReply get(const std::string& path) { return http(server_.port(), "GET", path); }
    std::string workdir(const json::object& run) {
        const HttpReply thread = get("/api/chat/thread/" + text(run, "thread_id"));
        return server_.workspace("local") + "/" + text(thread.json().as_object(), "workdir_path");
    }
    // A run that is inside its tool until go().
    json::object hold() {
        const json::object run = server_.submit("main", "hold");
        const std::string held = workdir(run) + "/held";
        const auto until = std::chrono::steady_clock::now() + 60s;
        while (!std::filesystem::exists(held) && std::chrono::steady_clock::now() < until) {
            std::this_thread::sleep_for(5ms);
        }
        EXPECT_TRUE(std::filesystem::exists(held)) << server_.log();
        return run;
    }
    void go(const json::object& run) {
        const std::string file = workdir(run) + "/go";
        std::ofstream(file) << "go";
        EXPECT_TRUE(std::filesystem::exists(file));
    }
    void wait_for_effect(const json::object& run) {
        const std::string effects = workdir(run) + "/effects";
        const auto until = std::chrono::steady_clock::now() + 60s;
        while (!std::filesystem::exists(effects) && std::chrono::steady_clock::now() < until) {
            std::this_thread::sleep_for(5ms);
        }
        EXPECT_TRUE(std::filesystem::exists(effects));
    }
    std::string newest_thread() {
        const json::value newest = get("/api/chat/threads?limit=1").json();
        return text(newest.at("threads").at(0).as_object(), "id");
    }

    // Submits until even the smallest is refused; checks each refusal. The run ids that were
    // accepted.
    std::vector<std::string> fill(const std::string& code, const std::string& remedy) {
        std::vector<std::string> accepted;
        int refused = 0;
        for (const std::size_t size : {300'000UL, 30'000UL, 3000UL, 3UL}) {
            refused = 0;
            for (int i = 0; i < 400 && refused < 3; ++i) {
                const std::string before = newest_thread();
                const std::string key = std::to_string(size) + "-" + std::to_string(i);
                const HttpReply reply = send(std::string(size, 'x'), key);
                if (reply.status == 202) {
                    accepted.push_back(text(reply.json().as_object(), "run_id"));
                    continue;
                }
                ++refused;
                EXPECT_EQ(reply.status, 503) << reply.body;
                EXPECT_EQ(reply.json().at("detail").at("code"), json::value(code)) << reply.body;
                EXPECT_NE(reply.body.find(remedy), std::string::npos) << reply.body;
                EXPECT_TRUE(reply.headers.contains("retry-after"));
                EXPECT_EQ(newest_thread(), before) << "a refused run leaves no thread";
                EXPECT_EQ(get("/api/agent/requests/" + key).status, 404);
            }
        }
        EXPECT_EQ(refused, 3) << "the fault never fired";
        return accepted;
    }
    void expect_readable(const json::object& finished) {
        const std::string run = "/api/agent/runs/" + text(finished, "run_id");
        const std::string thread = "/api/chat/thread/" + text(finished, "thread_id");
        EXPECT_EQ(get("/api/system/health").status, 200);
        EXPECT_EQ(get(run + "/result").json().at("output"), "answered");
        EXPECT_NE(get(thread + "/history").body.find("answered"), std::string::npos);
        EXPECT_EQ(get(thread + "/checkpoints").status, 200);
        const std::vector<SseEvent> events = read_events(server_.port(), run + "/events");
        EXPECT_EQ(events.back().type, "end");
    }
    void expect_all_completed(const std::vector<std::string>& runs) {
        for (const std::string& id : runs) {
            const json::object result = server_.wait_for_end(id);
            EXPECT_EQ(result.at("status"), "completed") << json::serialize(result);
            const auto events = read_events(server_.port(), "/api/agent/runs/" + id + "/events");
            EXPECT_TRUE(ids_rise(events));
            EXPECT_EQ(events.back().type, "end");
        }
    }
    // What a start that must fail says: before its port opens, or (1) after that.
    std::string refusal(
        int exit_code = 2, const std::map<std::string, std::string>& environment = {}
    ) {
        try {
            server_.start(environment);
            EXPECT_EQ(exit_code, 1) << server_.log();
        } catch (const std::runtime_error&) {
        }
        const Finished finished = server_.wait_for_exit();
        EXPECT_EQ(finished.exit_code, exit_code) << finished.err;
        return finished.err;
    }
    std::size_t thread_directories() {
        const auto all =
            std::filesystem::directory_iterator(server_.workspace("local") + "/projects");
        return static_cast<std::size_t>(std::distance(begin(all), end(all)));
    }
    [[nodiscard]] std::string store() const { return server_.data_dir() + "/store"; }
    [[nodiscard]] std::string data_file() const { return store() + "/data.mdb"; }

    Server server_;
};

TEST_F(StorageFault, K105AFullMapRefusesRunsKeepsReadsAndLosesNothing) {
    server_.add_settings("store: {max_size: 16MiB}\n");
    server_.start();
    const json::object first = server_.submit("main", "first");
    server_.wait_for_end(text(first, "run_id"));
    const json::object held = hold();
    std::vector<std::string> accepted = fill("store_full", "raise it");
    expect_readable(first);
    go(held);
    wait_for_effect(held);
    EXPECT_EQ(server_.stop(), 0) << "what waits for room keeps nobody from stopping";
    std::string larger = read_text(server_.config_path());
    larger.replace(larger.find("16MiB"), 5, "64MiB");
    server_.write("appliance.yaml", larger);
    server_.start();
    accepted.push_back(text(held, "run_id"));
    expect_all_completed(accepted);
    EXPECT_EQ(thread_directories(), accepted.size() + 1) << "what was refused made none";
    EXPECT_EQ(send("more").status, 202);
    for (const auto& [line, count] : server_.effects("local")) {
        EXPECT_EQ(count, 1) << line;
    }
}

TEST_F(StorageFault, R6AFullDiskRefusesRunsAndEverythingGoesOnWhenThereIsRoom) {
    const SmallDisk disk(store(), "size=16m");
    NEEDS_MOUNT(disk);
    server_.start();
    const json::object first = server_.submit("main", "first");
    server_.wait_for_end(text(first, "run_id"));
    const json::object held = hold();
    disk.fill();
    std::vector<std::string> accepted = fill("disk_full", "free some");
    expect_readable(first);
    go(held);
    // The tool is done and its result can't be stored: the run waits and is not lost.
    wait_for_effect(held);
    EXPECT_EQ(
        get("/api/agent/runs/" + text(held, "run_id")).json().at("run").at("status"), "running"
    );
    expect_readable(first);
    disk.free();
    accepted.push_back(text(held, "run_id"));
    expect_all_completed(accepted);
    EXPECT_EQ(server_.effects("local")["did"], 1);
    const json::object later = server_.submit("main", "later");
    EXPECT_EQ(server_.wait_for_end(text(later, "run_id")).at("output"), "answered");
    EXPECT_EQ(server_.stop(), 0);
}

TEST_F(StorageFault, R6ADiskThatFailsRefusesRunsAndEverythingGoesOnWhenItWorks) {
    const TempDir place;
    const std::string broken = place.path() + "/broken";
    server_.use_binary(ARS_FAILPOINTS);
    server_.start({{"ARS_FAIL_WHILE", broken}});
    const json::object first = server_.submit("main", "first");
    server_.wait_for_end(text(first, "run_id"));
    const json::object held = hold();
    std::ofstream(broken) << "broken";
    EXPECT_TRUE(fill("disk_failed", "the kernel's log").empty());
    expect_readable(first);
    go(held);
    wait_for_effect(held);
    EXPECT_EQ(
        get("/api/agent/runs/" + text(held, "run_id")).json().at("run").at("status"), "running"
    );
    std::filesystem::remove(broken);
    expect_all_completed({text(held, "run_id")});
    EXPECT_EQ(server_.effects("local")["did"], 1);
    EXPECT_EQ(send("more").status, 202);
    EXPECT_EQ(server_.stop(), 0);
}

// What a model says is shown as it comes. Where that can't be stored, only the showing fails: the
// run ends like any other, with all of its text.
TEST_F(StorageFault, K76EventsThatCantBeStoredDoNotKeepARunFromItsEnd) {
    ModelServer model([](const RecordedRequest&, std::size_t n) {
        if (n > 0) {
            return text_reply({"the whole ", "answer"});
        }
        ScriptedReply endless = text_reply(std::vector<std::string>(3000, "a piece "));
        std::vector<Step> paced;
        for (Step& step : endless.body) {
            paced.push_back(std::move(step));
            paced.emplace_back(Pause{20ms});
        }
        endless.body = std::move(paced);
        return endless;
    });
    const TempDir place;
    const std::string broken = place.path() + "/broken";
    server_.use_binary(ARS_FAILPOINTS);
    server_.use_model(model.base_url(), "retries: 2");
    server_.start({{"ARS_FAIL_WHILE", broken}});
    const std::string run = text(server_.submit("main", "go"), "run_id");
    ASSERT_TRUE(model.wait_for_requests(1, 30s));
    std::ofstream(broken) << "broken";
    for (int i = 0; i < 3000 && server_.log().find("deltas_not_stored") == std::string::npos; ++i) {
        std::this_thread::sleep_for(10ms);
    }
    EXPECT_NE(server_.log().find("deltas_not_stored"), std::string::npos) << server_.log();
    std::filesystem::remove(broken);
    model.drop_connections();
    const json::object result = server_.wait_for_end(run);
    EXPECT_EQ(result.at("status"), "completed") << json::serialize(result);
    EXPECT_EQ(result.at("output"), "the whole answer");
    const auto events = read_events(server_.port(), "/api/agent/runs/" + run + "/events");
    EXPECT_TRUE(ids_rise(events));
    EXPECT_EQ(events.back().type, "end");
}

TEST_F(StorageFault, AKillOnAFullDiskLosesNothingThatWasAccepted) {
    const SmallDisk disk(store(), "size=16m");
    NEEDS_MOUNT(disk);
    server_.start();
    const json::object held = hold();
    disk.fill();
    std::vector<std::string> accepted = fill("disk_full", "free some");
    go(held);
    server_.kill();
    disk.free();
    server_.start();
    accepted.push_back(text(held, "run_id"));
    expect_all_completed(accepted);
    EXPECT_LE(server_.effects("local")["did"], 1);
}

TEST_F(StorageFault, AReadOnlyDiskIsRefusedAtTheStart) {
    const SmallDisk disk(store(), "size=16m");
    NEEDS_MOUNT(disk);
    ASSERT_TRUE(disk.make_read_only()) << std::strerror(errno);
    const std::string said = refusal();
    EXPECT_NE(said.find(store()), std::string::npos) << said;
    EXPECT_NE(said.find("Read-only file system"), std::string::npos) << said;
}

TEST_F(StorageFault, AFullDiskAtTheStartIsSaid) {
    const SmallDisk disk(store(), "size=16m");
    NEEDS_MOUNT(disk);
    disk.fill();
    const std::string said = refusal();
    EXPECT_NE(said.find("no room left on the disk of data_dir"), std::string::npos) << said;
    disk.free();
    server_.start();
    const json::object run = server_.submit("main", "first");
    EXPECT_EQ(server_.wait_for_end(text(run, "run_id")).at("output"), "answered");
}

// Before the port opens (2), and when there are runs to take over (1). A map that is full in truth
// has pages of its last commits to give back, which is room for as little as a boot writes.
TEST_F(StorageFault, AFullMapAtTheStartIsSaid) {
    const TempDir place;
    const std::string full = place.write("full", "");
    server_.use_binary(ARS_FAILPOINTS);
    server_.start();
    const json::object held = hold();
    const std::string directory = workdir(held);
    server_.kill();
    for (const int exit_code : {2, 1}) {
        const std::string said = refusal(
            exit_code,
            {{"ARS_FAIL_WHILE", full},
             {"ARS_FAIL_WITH", "map full"},
             {"ARS_FAIL_FROM", exit_code == 2 ? "1" : "2"}}
        );
        EXPECT_NE(said.find("has reached store.max_size"), std::string::npos) << said;
        EXPECT_NE(said.find("raise it and restart"), std::string::npos) << said;
        EXPECT_EQ(said.find("runs can't be taken over") == std::string::npos, exit_code == 2);
    }
    std::ofstream(directory + "/go") << "go";
    server_.start();
    EXPECT_EQ(server_.wait_for_end(text(held, "run_id")).at("status"), "completed");
    EXPECT_LE(server_.effects("local")["did"], 1);
}

// In each way that a file gets lost: no start, a reason, a remedy, and the file as it was.
TEST_F(StorageFault, ATruncatedOrForeignFileIsRefusedAtTheStartAndLeftAsItIs) {
    server_.start();
    for (int i = 0; i < 20; ++i) {
        const json::object run = server_.submit("main", std::string(20'000, 'x'));
        server_.wait_for_end(text(run, "run_id"));
    }
    const std::string before = newest_thread();
    ASSERT_EQ(server_.stop(), 0);
    const std::string sound = read_text(data_file());
    ASSERT_GT(sound.size(), 200'000U);
    std::string noise = sound;
    for (std::size_t i = 0; i < noise.size(); ++i) {
        noise[i] = static_cast<char>(i * 7919 >> 3);
    }
    std::string torn = sound;  // everything but the two heads
    std::copy(noise.begin() + 8192, noise.end(), torn.begin() + 8192);
    const std::map<std::string, std::string> files{
        {"half of it", sound.substr(0, sound.size() / 2)},
        {"without its last pages", sound.substr(0, sound.size() - 40'960)},
        {"one page", sound.substr(0, 4096)},
        {"half a page", sound.substr(0, 2048)},
        {"noise", noise},
        {"heads and noise", torn},
        {"a text", "this is no store\n"},
    };
    for (const auto& [what, bytes] : files) {
        SCOPED_TRACE(what);
        std::ofstream(data_file(), std::ios::binary | std::ios::trunc) << bytes;
        const std::string said = refusal();
        EXPECT_NE(said.find("restore data_dir from a backup"), std::string::npos) << said;
        EXPECT_EQ(read_text(data_file()).substr(0, bytes.size()), bytes);
    }
    std::ofstream(data_file(), std::ios::binary | std::ios::trunc) << sound;
    server_.start();
    EXPECT_EQ(newest_thread(), before);
}

TEST_F(StorageFault, AStoreOfANewerProgramIsRefusedAtTheStart) {
    server_.start();
    ASSERT_EQ(server_.stop(), 0);
    std::string bytes = read_text(data_file());
    // The entry's key with its value, a number of four bytes: one in each copy of its page.
    int changed = 0;
    for (std::size_t at = bytes.find(std::string("schema\0\0\0", 9)); at != std::string::npos;
         at = bytes.find(std::string("schema\0\0\0", 9), at + 1)) {
        bytes[at + 9] = 99;
        ++changed;
    }
    ASSERT_GT(changed, 0);
    std::ofstream(data_file(), std::ios::binary | std::ios::trunc) << bytes;
    const std::string said = refusal();
    EXPECT_NE(said.find("schema 99"), std::string::npos) << said;
    EXPECT_EQ(read_text(data_file()), bytes);
}

// S11: no lease that a pause could outlast. One that stands still keeps its directory and goes on.
TEST_F(StorageFault, S11ASecondServerOnTheDirectoryIsRefusedAndTheFirstGoesOn) {
    server_.start();
    const json::object held = hold();
    ASSERT_EQ(::kill(server_.pid(), SIGSTOP), 0);
    const Finished second = run({ars_binary(), "serve", "--config", server_.config_path()});
    EXPECT_EQ(second.exit_code, 2);
    EXPECT_NE(second.err.find("pid " + std::to_string(server_.pid())), std::string::npos)
        << second.err;
    EXPECT_NE(second.err.find("stop it, or give this one its own data_dir"), std::string::npos)
        << second.err;
    ASSERT_EQ(::kill(server_.pid(), SIGCONT), 0);
    go(held);
    EXPECT_EQ(server_.wait_for_end(text(held, "run_id")).at("output"), "released");
    EXPECT_EQ(server_.effects("local")["did"], 1);
    const json::object one = server_.submit("main", "go");
    EXPECT_EQ(server_.wait_for_end(text(one, "run_id")).at("output"), "answered");
    server_.kill();
    server_.start();  // nobody holds a dead one's lock
}

}  // namespace
}  // namespace ars::tests
