// The allow-list as tools meet it: real scopes, whose only way out is the proxy.
#include "tests/support/name_server.hpp"
#include "tests/unit/sandbox/egress_fixture.hpp"
#include "tests/unit/sandbox/scope_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>

namespace ars::sandbox {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using tests::NameServer;

const NameServer::Table kNames = {
    {"good.test", {"127.0.0.1"}},
    {"other.test", {"127.0.0.1"}},
    {"metadata.test", {"169.254.169.254"}},
};
constexpr const char* kSay = "/home/gem/user-data/probe";

class EgressScope : public ::testing::Test {
  protected:
    void SetUp() override {
        bench_.policy().name = "web";
        bench_.policy().network = Network::allowlist;
        bench_.policy().allowed_hosts = {
            "good.test:" + port() + "=127.0.0.0/8", "metadata.test", "*.pypi.test"
        };
        if (const auto acquired = bench_.acquire(); !acquired) {
            GTEST_SKIP() << "no namespaces tier on this host: " << acquired.error().message;
        }
        const std::string copy = bench_.workspace() + "/probe";
        {
            std::ifstream from(std::string(ARS_SANDBOX_PROGRAMS) + "/tcp_say", std::ios::binary);
            std::ofstream to(copy, std::ios::binary);
            to << from.rdbuf();
        }
        ::chmod(copy.c_str(), 0755);
    }
    [[nodiscard]] std::string port() const { return std::to_string(upstream_.port()); }
    // What the proxy of the scope answers to these bytes, in printf's escapes.
    std::string say(const std::string& bytes, const std::string& id = "root") {
        return bench_.command(testing::shell("printf '" + bytes + "' | " + kSay + " 3128"), id).out;
    }
    // Skips the rest of a test where the image lacks a program.
    bool has(const std::string& program) {
        return bench_.sh("command -v " + program).exit_code == 0;
    }

    NameServer names_{kNames};
    testing::Upstream upstream_{testing::serve_page};
    testing::Bench bench_{IoBackend::automatic, {.name_servers = names_.name()}};
};

TEST_F(EgressScope, OnlyAllowedHostsAreReachedAndOnlyThroughTheProxy) {
    EXPECT_THAT(
        say("GET http://good.test:" + port() + "/x HTTP/1.1\\r\\n\\r\\n"),
        HasSubstr("page of GET /x HTTP/1.1")
    );
    EXPECT_THAT(
        say("CONNECT good.test:" + port() + " HTTP/1.1\\r\\n\\r\\nGET /y HTTP/1.1\\r\\n\\r\\n"),
        HasSubstr("page of GET /y HTTP/1.1")
    );
    EXPECT_THAT(
        say("CONNECT other.test:" + port() + " HTTP/1.1\\r\\n\\r\\n"), StartsWith("HTTP/1.1 403 ")
    );
    // The server's loopback is not the scope's, and there is no other interface.
    const Outcome direct = bench_.sh(std::string(kSay) + " " + port() + " </dev/null");
    EXPECT_EQ(direct.exit_code, 7) << direct.out;
    EXPECT_EQ(bench_.sh("cat /proc/net/dev | tail -n +3 | grep -vc lo:").out, "0\n");
    EXPECT_EQ(bench_.sandbox().counters().egress.refused, 1U);
    EXPECT_EQ(bench_.sandbox().counters().egress.denied_hosts, 1U);
    EXPECT_EQ(bench_.sandbox().counters().egress.connections, 3U);
}

TEST_F(EgressScope, FailedCommandNamesTheHostsThatWereRefused) {
    const auto ask = [](const std::string& host) {
        return "printf 'CONNECT " + host + " HTTP/1.1\\r\\n\\r\\n' | " + kSay + " 3128; ";
    };
    const Outcome failed = bench_.sh(
        ask("other.test:443") + ask("other.test:80") + ask("metadata.test:443") + "exit 9"
    );
    EXPECT_THAT(failed.denied_hosts, ::testing::ElementsAre("other.test", "metadata.test"));
    EXPECT_EQ(
        failed.detail, "other.test, metadata.test refused by sandbox.policies.web.allowed_hosts"
    );
    const Outcome went_on = bench_.sh(ask("other.test:443") + "true");
    EXPECT_EQ(went_on.detail, "");
    EXPECT_THAT(went_on.denied_hosts, ::testing::ElementsAre("other.test"));
    EXPECT_THAT(bench_.sh("exit 9").denied_hosts, IsEmpty());
}

// C86: as in the proxy's own tests, from within.
TEST_F(EgressScope, C86_HostsInOtherSpellingsAndMetadataAreRefused) {
    for (const char* host :
         {"evil.test\\000.good.test",
          "good.test.",
          "127.0.0.1",
          "[::ffff:127.0.0.1]",
          "169.254.169.254",
          "2130706433",
          "metadata.test"}) {
        for (const std::string& request :
             {std::string("CONNECT ") + host + ":443 HTTP/1.1\\r\\n\\r\\n",
              std::string("GET http://") + host + "/ HTTP/1.1\\r\\n\\r\\n"}) {
            EXPECT_THAT(say(request), StartsWith("HTTP/1.1 40")) << request;
        }
    }
    EXPECT_THAT(
        say("GET http://GOOD.test:" + port() + "/ HTTP/1.1\\r\\n\\r\\n"), HasSubstr("page of GET /")
    );
    EXPECT_EQ(upstream_.connections(), 1);
}

// C85: a look-up fails at once, and nobody hears of it.
TEST_F(EgressScope, C85_NamesAreNotLookedUpInTheScope) {
    const Outcome known = bench_.sh("getent hosts secret.evil.test; getent ahosts good.test");
    EXPECT_EQ(known.out, "");
    EXPECT_NE(known.exit_code, 0);
    EXPECT_LT(known.duration, 5s);  // one time-out of libc's resolver
    if (has("dig")) {
        EXPECT_LT(bench_.sh("dig secret.evil.test").duration, 10s);
    }
    if (has("curl")) {
        EXPECT_EQ(
            bench_.sh("curl -sS -o /dev/null -w '%{http_code}' http://x.evil.test").out, "403"
        );
    }
    EXPECT_THAT(names_.asked(), IsEmpty());
}

// C35: servers of the scope's own stay reachable, past the proxy.
TEST_F(EgressScope, C35_LoopbackServersOfTheScopeWork) {
    if (!has("curl") || !has("python3")) {
        GTEST_SKIP() << "no curl or no python3 in this image";
    }
    EXPECT_THAT(
        bench_
            .sh("cd /tmp; python3 -m http.server 8080 >/dev/null 2>&1 & "
                "for i in $(seq 100); do curl -sf http://127.0.0.1:8080/ && break; sleep 0.1; "
                "done; "
                "curl -sf http://localhost:8080/ >/dev/null && echo by name; kill %1",
                60s)
            .out,
        HasSubstr("by name")
    );
    EXPECT_EQ(bench_.sandbox().counters().egress.connections, 0U);
}

// C38: refused means refused: curl's exit code 7, not a failed look-up (6).
TEST_F(EgressScope, C38_ARefusedLoopbackPortIsARefusedConnection) {
    if (!has("curl")) {
        GTEST_SKIP() << "no curl in this image";
    }
    EXPECT_EQ(bench_.sh("curl -s http://localhost:9/").exit_code, 7);
}

TEST_F(EgressScope, CurlUsesTheProxyWithoutBeingTold) {
    if (!has("curl")) {
        GTEST_SKIP() << "no curl in this image";
    }
    const std::string url = "http://good.test:" + port() + "/";
    EXPECT_THAT(bench_.sh("curl -sS " + url).out, HasSubstr("page of GET / HTTP/1.1"));
    EXPECT_THAT(bench_.sh("curl -sS -p " + url).out, HasSubstr("page of GET / HTTP/1.1"));
    EXPECT_THAT(
        bench_.sh("head -c 300000 /dev/zero | curl -sS -T - " + url).out,
        HasSubstr("Transfer-Encoding: chunked")
    );
    const Outcome refused = bench_.sh("curl -sS https://evil.test/");
    EXPECT_EQ(refused.exit_code, 56);
    EXPECT_THAT(refused.err, HasSubstr("403"));
    EXPECT_THAT(
        bench_.sh("curl -sS http://evil.test/").out,
        HasSubstr("evil.test:80 is not in this policy's allowed_hosts")
    );
}

TEST_F(EgressScope, PythonUsesTheProxyAndShowsItsReason) {
    if (!has("python3")) {
        GTEST_SKIP() << "no python3 in this image";
    }
    const std::string get =
        "python3 -c 'import sys,urllib.request as u;"
        "print(u.urlopen(sys.argv[1]).read().decode())' ";
    EXPECT_THAT(
        bench_.sh(get + "http://good.test:" + port() + "/p").out, HasSubstr("page of GET /p")
    );
    EXPECT_THAT(
        bench_.sh(get + "https://evil.test/").err,
        HasSubstr("403 evil.test:443 is not in this policy's allowed_hosts")
    );
}

// C87: each runtime is told in the way it listens to.
TEST_F(EgressScope, C87_RuntimesAreToldOfTheProxy) {
    const std::string environment = bench_.sh("env").out;
    for (const char* line :
         {"HTTP_PROXY=http://127.0.0.1:3128\n",
          "https_proxy=http://127.0.0.1:3128\n",
          "NO_PROXY=localhost,127.0.0.1,::1\n",
          "NODE_USE_ENV_PROXY=1\n",
          "npm_config_https_proxy=http://127.0.0.1:3128\n",
          "JAVA_TOOL_OPTIONS=-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3128 "}) {
        EXPECT_THAT(environment, HasSubstr(line));
    }
    if (has("java")) {
        EXPECT_THAT(
            bench_.sh("java -Xmx64m -XshowSettings:properties -version 2>&1", 60s).out,
            HasSubstr("https.proxyHost = 127.0.0.1")
        );
    }
    Command own = testing::shell("echo $http_proxy $https_proxy");
    own.environment["http_proxy"] = "http://mine:1";
    EXPECT_EQ(bench_.command(std::move(own)).out, "http://mine:1 http://127.0.0.1:3128\n");
}

TEST_F(EgressScope, AScopeWithoutAnAllowListHasNoProxy) {
    bench_.policy() = Policy{};
    EXPECT_EQ(
        bench_.command(testing::shell(std::string(kSay) + " 3128 </dev/null"), "none").exit_code, 7
    );
    EXPECT_THAT(bench_.command(testing::shell("env"), "none").out, Not(HasSubstr("3128")));
}

TEST_F(EgressScope, EachScopeHasTheListOfItsOwnPolicy) {
    bench_.policy().name = "other";
    bench_.policy().allowed_hosts = {"other.test:" + port() + "=127.0.0.0/8"};
    const std::string good = "GET http://good.test:" + port() + "/ HTTP/1.1\\r\\n\\r\\n";
    const std::string other = "GET http://other.test:" + port() + "/ HTTP/1.1\\r\\n\\r\\n";
    EXPECT_THAT(say(other, "second"), HasSubstr("page of"));
    EXPECT_THAT(say(good, "second"), StartsWith("HTTP/1.1 403 "));
    bench_.policy().name = "empty";
    bench_.policy().allowed_hosts = {};
    EXPECT_THAT(say(good, "third"), StartsWith("HTTP/1.1 403 "));
    bench_.policy().name = "web";
    EXPECT_THAT(say(good), HasSubstr("page of"));
}

TEST_F(EgressScope, AnAllowListThatCantBeReadMakesNoScope) {
    bench_.policy().allowed_hosts = {"10.0.0.1"};
    const auto refused = bench_.acquire("broken");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, "bad_allowed_host");
}

TEST_F(EgressScope, TheEndOfAScopeEndsItsConnections) {
    std::atomic<bool> connected = false;
    std::atomic<bool> ended = false;
    testing::Upstream quiet([&](testing::Peer& peer) {
        connected = true;
        peer.receive_all();
        ended = true;
    });
    bench_.policy().allowed_hosts = {"good.test:" + std::to_string(quiet.port()) + "=127.0.0.1"};
    bench_.command(
        testing::shell(
            "(printf 'CONNECT good.test:" + std::to_string(quiet.port()) +
            " HTTP/1.1\\r\\n\\r\\n'; sleep 60) | " + kSay +
            " 3128 >/tmp/out & "
            "until grep -q established /tmp/out; do sleep 0.05; done"
        ),
        "tunnel"
    );
    EXPECT_TRUE(connected);
    EXPECT_EQ(bench_.sandbox().counters().egress.open, 1U);
    bench_.run_void(bench_.sandbox().release({"alice", "tunnel", "web"}));
    EXPECT_EQ(bench_.sandbox().counters().egress.open, 0U);
    for (int i = 0; i < 1000 && !ended; ++i) {
        std::this_thread::sleep_for(10ms);
    }
    EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace ars::sandbox
