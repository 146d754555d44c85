#include "tests/support/model_server.hpp"
#include "tests/support/server_wire.hpp"
#include "tests/unit/runtime/models/client_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include <stdlib.h>
#include <unistd.h>

namespace ars::models {
namespace {

using testing::HasSubstr;
using tests::make_certificate;
using tests::ModelServer;
using tests::TestCertificate;
using tests::text_reply;

class TempFile {
  public:
    explicit TempFile(const std::string& text) {
        const int fd = ::mkstemp(path_.data());
        ::close(fd);
        std::ofstream(path_) << text;
    }
    ~TempFile() { ::unlink(path_.c_str()); }
    TempFile(const TempFile&) = delete;
    TempFile& operator=(const TempFile&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::string path_ = "/tmp/ars_ca_XXXXXX";
};

struct TlsServer {
    explicit TlsServer(const std::string& name)
        : certificate(make_certificate(name)),
          ca(certificate.certificate_pem),
          server(options_for(certificate), [](const auto&, std::size_t) {
              return text_reply({"secret"});
          }) {}

    static ModelServer::Options options_for(const TestCertificate& certificate) {
        ModelServer::Options options;
        options.certificate_pem = certificate.certificate_pem;
        options.key_pem = certificate.key_pem;
        return options;
    }

    // The URL of the server under another name for this machine.
    [[nodiscard]] std::string url(const std::string& host) const {
        return "https://" + host + ":" + std::to_string(server.port()) + "/v1";
    }

    TestCertificate certificate;
    TempFile ca;
    ModelServer server;
};

OpenAiClient::Settings settings_for(const std::string& url, const std::string& ca_file) {
    auto settings = quick_settings(url);
    settings.ca_file = ca_file;
    return settings;
}

TEST(HttpClientTls, SpeaksToAHostWhoseCertificateIsTrusted) {
    const TlsServer tls("localhost");
    Caller caller(settings_for(tls.url("localhost"), tls.ca.path()));
    for (int i = 0; i < 2; ++i) {
        const auto reply = caller.call(request_saying("hi"));
        ASSERT_TRUE(reply) << reply.error().message;
        EXPECT_EQ(reply->content, "secret");
    }
}

TEST(HttpClientTls, SpeaksToAnAddressNamedByItsCertificate) {
    const TlsServer tls("127.0.0.1");
    const auto reply =
        Caller(settings_for(tls.url("127.0.0.1"), tls.ca.path())).call(request_saying("hi"));
    ASSERT_TRUE(reply) << reply.error().message;
}

TEST(HttpClientTls, RefusesTheCertificateOfAnotherHost) {
    for (const auto& [certified, asked] : std::vector<std::pair<std::string, std::string>>{
             {"example.com", "localhost"}, {"localhost", "127.0.0.1"}, {"127.0.0.2", "127.0.0.1"}
         }) {
        const TlsServer tls(certified);
        const auto reply =
            Caller(settings_for(tls.url(asked), tls.ca.path())).call(request_saying("hi"));
        ASSERT_FALSE(reply) << certified << " passed as " << asked;
        EXPECT_EQ(reply.error().code, "model_unavailable");
        EXPECT_THAT(reply.error().message, HasSubstr("mismatch"));
        EXPECT_TRUE(tls.server.requests().empty());
    }
}

TEST(HttpClientTls, RefusesAnAuthorityItDoesNotTrust) {
    const TlsServer tls("localhost");
    const TempFile other(make_certificate("localhost").certificate_pem);
    const auto reply =
        Caller(settings_for(tls.url("localhost"), other.path())).call(request_saying("hi"));
    ASSERT_FALSE(reply);
    EXPECT_THAT(reply.error().message, HasSubstr("ca_file"));
    EXPECT_TRUE(tls.server.requests().empty());
}

TEST(HttpClientTls, RefusesWithoutABundle) {
    const auto missing = Caller(settings_for("https://localhost:1/v1", "/nonexistent.pem"))
                             .call(request_saying("hi"));
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, "model_unavailable");
    const TlsServer tls("localhost");
    const TempFile empty("no certificate here\n");
    const auto useless =
        Caller(settings_for(tls.url("localhost"), empty.path())).call(request_saying("hi"));
    ASSERT_FALSE(useless);
    EXPECT_THAT(useless.error().message, HasSubstr("no usable certificates"));
}

TEST(HttpClientTls, DoesNotSpeakTlsToAPlainServer) {
    ModelServer plain;
    auto settings = quick_settings("https://127.0.0.1:" + std::to_string(plain.port()) + "/v1");
    const TempFile ca(make_certificate("127.0.0.1").certificate_pem);
    settings.ca_file = ca.path();
    settings.connect_timeout = std::chrono::milliseconds(500);
    settings.retries = 0;
    const auto reply = Caller(settings).call(request_saying("hi"));
    ASSERT_FALSE(reply);
    EXPECT_THAT(reply.error().code, testing::AnyOf("model_unavailable", "model_timeout"));
}

}  // namespace
}  // namespace ars::models
