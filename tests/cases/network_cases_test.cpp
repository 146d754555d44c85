// C85-C87: a network of allowed hosts. Nothing but the proxy leads out, it decides on one canonical
// name, and tools are told of it.
#include "tests/cases/fixture.hpp"

#include <boost/json/serialize.hpp>

namespace ars::tests {
namespace {

class NetworkCases : public Cases {
  protected:
    void SetUp() override {
        Cases::SetUp();
        if (IsSkipped()) {
            return;
        }
        options_.flags = {
            "--config",
            write_config(config_, "web: {network: allowlist, allowed_hosts: [good.example]}"),
            "--policy",
            "web"
        };
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
