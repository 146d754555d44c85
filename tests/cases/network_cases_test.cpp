// C85-C87: a network of allowed hosts. Nothing but the proxy leads out, it decides on one canonical
// name, and tools are told of it.
#include "tests/cases/fixture.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <atomic>
#include <thread>

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ars::tests {
namespace {

// 127.0.0.1:port of this machine; -1 where somebody else has it.
int bind_loopback(int type, std::uint16_t port) {
    const int socket = ::socket(AF_INET, type | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        ::close(socket);
        return -1;
    }
    return socket;
}

// A web server on this machine's loopback, outside of every sandbox.
class Page {
  public:
    Page() : socket_(bind_loopback(SOCK_STREAM, 0)) {
        sockaddr_in address{};
        socklen_t size = sizeof address;
        EXPECT_EQ(::listen(socket_, 8), 0);
        EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
        port_ = ntohs(address.sin_port);
        thread_ = std::thread([this] { serve(); });
    }
    Page(const Page&) = delete;
    Page& operator=(const Page&) = delete;
    ~Page() {
        stop_ = true;
        thread_.join();
        ::close(socket_);
    }
    [[nodiscard]] std::string port() const { return std::to_string(port_); }
    [[nodiscard]] int connections() const { return connections_; }

  private:
    void serve() {
        while (!stop_) {
            pollfd waiting{socket_, POLLIN, 0};
            if (::poll(&waiting, 1, 50) != 1) {
                continue;
            }
            const int client = ::accept(socket_, nullptr, nullptr);
            ++connections_;
            char request[4096];
            (void)::recv(client, request, sizeof request, 0);
            const std::string answer =
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\npage\n";
            (void)::send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
            ::close(client);
        }
    }

    int socket_;
    std::uint16_t port_ = 0;
    std::atomic<bool> stop_ = false;
    std::atomic<int> connections_ = 0;
    std::thread thread_;
};

class NetworkCases : public Cases {
  protected:
    void SetUp() override {
        Cases::SetUp();
        if (!IsSkipped()) {
            allow("good.example");
        }
    }
    void allow(const std::string& hosts) {
        const std::string policy = "web: {network: allowlist, allowed_hosts: [" + hosts + "]}";
        options_.flags = {"--config", write_config(config_, policy), "--policy", "web"};
    }
    // Without a network namespace a list of hosts would be a promise that nothing keeps.
    bool refused_in_landlock() {
        if (!landlock()) {
            return false;
        }
        std::vector<std::string> argv = exec_argv(GetParam(), options_);
        argv.insert(argv.end(), {"--", "true"});
        const Finished refused = ars::tests::run(argv);
        EXPECT_EQ(refused.exit_code, 125);
        EXPECT_NE(refused.err.find("namespaces"), std::string::npos) << refused.err;
        return true;
    }

  private:
    TempDir config_;
};

TEST_P(NetworkCases, C85_NoQueryLeavesForAName) {
    if (refused_in_landlock()) {
        return;
    }
    ARS_NEEDS("curl");
    const json::object done =
        run("curl -sS -o /dev/null -w '%{http_code}\\n' http://x.evil.example/; "
            "curl -sS -o /dev/null -w '%{http_connect}\\n' https://x.evil.example/ 2>/dev/null; "
            "getent hosts x.evil.example || echo no name");
    EXPECT_EQ(text(done, "stdout"), "403\n403\nno name\n") << json::serialize(done);
    ARS_NEEDS("dig");
    EXPECT_FALSE(exited(run("dig +tries=1 +time=1 secret.evil.example", {{"timeout", "10s"}}), 0));
}

TEST_P(NetworkCases, AllowedHostIsReachedThroughTheProxyAndAnotherIsNamedInTheOutcome) {
    ARS_NEEDS("curl");
    const Page page;
    allow("\"localhost:" + page.port() + "=127.0.0.0/8\"");
    if (refused_in_landlock()) {
        return;
    }
    const std::string url = "http://localhost:" + page.port() + "/";
    const std::string curl = "curl -sSf -m 20 --noproxy '' ";  // localhost is the scope's otherwise
    EXPECT_EQ(text(run(curl + url), "stdout"), "page\n");
    EXPECT_EQ(page.connections(), 1);
    EXPECT_FALSE(exited(run("curl -sS -m 20 --noproxy '*' " + url), 0)) << "past the proxy";
    const json::object refused = run(curl + "http://evil.example/");
    EXPECT_TRUE(exited(refused, 22));  // of curl -f, after a 403
    EXPECT_TRUE(
        holds(refused, "detail", "evil.example refused by sandbox.policies.web.allowed_hosts")
    ) << json::serialize(refused);
    EXPECT_EQ(json::serialize(refused.at("denied_hosts")), "[\"evil.example\"]");
    EXPECT_EQ(page.connections(), 1);
}

// A forwarder of the machine's own on 127.0.0.1 is what a resolver in the scope is sent to.
TEST_P(NetworkCases, C85_NameServerOnLoopbackHearsNothing) {
    if (refused_in_landlock()) {
        return;
    }
    ARS_NEEDS_MOUNTS();
    const TempDir files;
    files.write("resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n");
    const int server = bind_loopback(SOCK_DGRAM, 53);
    if (server < 0) {
        GTEST_SKIP() << "127.0.0.1:53 is not to be had here";
    }
    options_.wrapper = {
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        "mount --bind " + files.path() + "/resolv.conf $(realpath /etc/resolv.conf) && exec \"$@\"",
        "sh"
    };
    EXPECT_EQ(text(run("cat /etc/resolv.conf"), "stdout").substr(0, 20), "nameserver 127.0.0.1");
    EXPECT_EQ(text(run("getent ahosts x.evil.example || echo none"), "stdout"), "none\n");
    if (has_program("curl")) {
        EXPECT_EQ(
            text(run("curl -sS -o /dev/null -w '%{http_code}' http://x.evil.example/"), "stdout"),
            "403"
        );
    }
    char query[512];
    EXPECT_LT(::recv(server, query, sizeof query, MSG_DONTWAIT), 0) << "somebody asked";
    ::close(server);
}

TEST_P(NetworkCases, C86_EveryOtherSpellingOfAHostIsRefused) {
    if (refused_in_landlock()) {
        return;
    }
    ARS_NEEDS("python3");
    const json::object done = python(
        "import socket\n"
        "for host in ['evil.example\\0.good.example', 'good.example.evil.example', "
        "'evil.example#good.example',\n"
        "             '169.254.169.254', '127.0.0.1', '[::ffff:127.0.0.1]', '2130706433', "
        "'0x7f.1', '[::1]']:\n"
        "    for line in ['CONNECT %s:443 HTTP/1.1', 'GET http://%s/ HTTP/1.1']:\n"
        "        s = socket.create_connection(('127.0.0.1', 3128))\n"
        "        s.sendall((line % host + '\\r\\nHost: good.example\\r\\n\\r\\n').encode())\n"
        "        answer = s.recv(64).split()\n"
        "        if answer[1] not in (b'400', b'403'): print(host, line, answer)\n"
    );
    EXPECT_TRUE(exited(done, 0));
    EXPECT_EQ(text(done, "stdout"), "") << json::serialize(done);
}

TEST_P(NetworkCases, C87_RuntimesAreToldOfTheProxy) {
    if (refused_in_landlock()) {
        return;
    }
    const json::object done =
        run("printenv http_proxy HTTPS_PROXY NODE_USE_ENV_PROXY; printenv JAVA_TOOL_OPTIONS");
    EXPECT_TRUE(
        text(done, "stdout").starts_with("http://127.0.0.1:3128\nhttp://127.0.0.1:3128\n1\n")
    ) << json::serialize(done);
    EXPECT_TRUE(holds(done, "stdout", "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128"));
}

ARS_INSTANTIATE_CASES(NetworkCases);

}  // namespace
}  // namespace ars::tests
