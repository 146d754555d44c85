// A story that is killed at each of its durable writes, told again after a restart, and looked at.
//
// A story is a list of HTTP calls that may be repeated: each carries a request id or changes
// nothing the second time. It is told to a server that dies right before or right after its n-th
// commit, then once more to the next server, whose end is checked. The loop over n ends with the
// first telling that nothing kills, so that no point is left out.
#pragma once

#include "tests/support/server.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>

#include <signal.h>

namespace ars::tests {

class Story {
  public:
    virtual ~Story() = default;
    // Scripts, agents, settings.
    virtual void set_up(Server& server) = 0;
    [[nodiscard]] virtual std::map<std::string, std::string> environment() const { return {}; }
    // Throws when the server dies over it.
    virtual void tell(Server& server) = 0;
    // After a telling that came to its end.
    virtual void check(Server& server) = 0;

  protected:
    using object = boost::json::object;

    static std::string text(const object& from, const char* key) {
        return std::string(from.at(key).as_string());
    }
    static HttpReply get(const Server& server, const std::string& path) {
        return http(server.port(), "GET", path);
    }
    static HttpReply post(const Server& server, const std::string& path, const object& body) {
        return http_json(server.port(), "POST", path, body);
    }
    // Throws unless the condition comes true while the server lives.
    static void wait_until(Server& server, const std::function<bool()>& condition) {
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (!condition()) {
            if (!server.running() || std::chrono::steady_clock::now() > until) {
                throw std::runtime_error("it never came: " + server.log());
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
    }
    static object view(const Server& server, const std::string& run) {
        return get(server, "/api/agent/runs/" + run).json().at("run").as_object();
    }
    // I3, I5: status, last event and the one end agree.
    static void expect_closed_log(const Server& server, const std::string& run) {
        const std::vector<SseEvent> events =
            read_events(server.port(), "/api/agent/runs/" + run + "/events");
        EXPECT_TRUE(ids_rise(events)) << run;
        const auto is_end = [](const SseEvent& event) { return event.type == "end"; };
        EXPECT_EQ(std::ranges::count_if(events, is_end), 1) << run;
        ASSERT_TRUE(!events.empty() && is_end(events.back())) << run;
        EXPECT_NE(
            boost::json::serialize(events.back().data).find(text(view(server, run), "status")),
            std::string::npos
        ) << boost::json::serialize(events.back().data);
    }
    // Each call of the thread with its result, in order.
    static std::vector<object> calls(const Server& server, const std::string& thread) {
        std::vector<object> out;
        const boost::json::value history =
            get(server, "/api/chat/thread/" + thread + "/history").json();
        for (const boost::json::value& message : history.at("history").as_array()) {
            if (const boost::json::value* all = message.as_object().if_contains("tool_calls")) {
                for (const boost::json::value& call : all->as_array()) {
                    out.push_back(call.as_object());
                }
            }
        }
        return out;
    }
    // I4, I8: each call of the thread has its result, and no effect happened twice.
    static void expect_whole(const Server& server, const std::string& thread) {
        for (const object& call : calls(server, thread)) {
            EXPECT_FALSE(call.at("output").is_null()) << boost::json::serialize(call);
        }
        for (const auto& [line, count] : server.effects("local")) {
            EXPECT_EQ(count, 1) << line;
        }
    }
};

constexpr unsigned long kMostPoints = 500;

// True when it died.
inline bool dies_over(Server& server, Story& story) {
    try {
        story.tell(server);
    } catch (const std::exception& error) {
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        while (server.running() && std::chrono::steady_clock::now() < until) {
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        }
        if (server.running()) {
            ADD_FAILURE() << "the story broke off and nothing had died: " << error.what();
        }
        return true;
    }
    // What is written after the last answer is written before it stops.
    return server.stop() == 128 + SIGKILL;
}

template <class T>
void tell_at_every_commit(const std::string& moment, unsigned long fewest_points) {
    unsigned long deaths = 0;
    bool died = true;
    for (unsigned long point = 1; died && point < kMostPoints && !testing::Test::HasFailure();
         ++point) {
        SCOPED_TRACE(moment + " commit " + std::to_string(point));
        T story;
        Server server;
        story.set_up(server);
        server.use_binary(ARS_FAILPOINTS);
        std::map<std::string, std::string> environment = story.environment();
        environment["ARS_KILL_AT"] = moment + " " + std::to_string(point);
        try {
            server.start(environment);
            died = dies_over(server, story);
        } catch (const std::exception&) {
            died = true;  // in the first writes of a start
        }
        deaths += died ? 1 : 0;
        server.start(story.environment());
        try {
            story.tell(server);
            story.check(server);
        } catch (const std::exception& error) {
            ADD_FAILURE() << error.what();
        }
        EXPECT_EQ(server.stop(), 0);
    }
    std::printf("%s: %lu points\n", moment.c_str(), deaths);
    EXPECT_FALSE(died && !testing::Test::HasFailure()) << "it never came to its end";
    EXPECT_GE(deaths, fewest_points);
}

}  // namespace ars::tests
