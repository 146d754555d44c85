#include "sandbox/egress_rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ars::sandbox {
namespace {

using boost::asio::ip::make_address;

EgressRules rules(const std::vector<std::string>& entries) {
    auto parsed = EgressRules::parse(entries);
    EXPECT_TRUE(parsed) << parsed.error().message;
    return std::move(*parsed);
}

// What becomes of "host:port" in a request: "" when allowed, else the code of the refusal.
std::string verdict(const EgressRules& policy, std::string_view authority) {
    const auto target = parse_authority(authority, std::nullopt);
    if (!target) {
        return target.error().code;
    }
    const auto allowed = policy.check(*target);
    return allowed ? "" : allowed.error().code;
}

bool dials(const EgressRules& policy, std::string_view authority, const char* address) {
    const auto target = parse_authority(authority, std::nullopt);
    return target && policy.check(*target) && policy.check(*target, make_address(address));
}

TEST(HostName, IsLowerCasedAndNothingElse) {
    EXPECT_EQ(HostName::parse("PyPI.Org")->text(), "pypi.org");
    EXPECT_EQ(HostName::parse("xn--bcher-kva.example")->text(), "xn--bcher-kva.example");
    EXPECT_EQ(HostName::parse("my_service")->text(), "my_service");
    EXPECT_EQ(HostName::parse("1.example")->text(), "1.example");
}

// C86: whatever two parsers could read as two hosts is refused, however it is spelt.
TEST(Cases, C86_HostsThatAreNoCanonicalNamesAreRefused) {
    using namespace std::string_literals;
    const std::string label(64, 'a');
    std::string endless;
    for (int i = 0; i < 64; ++i) {
        endless += "abc.";
    }
    const std::string refused[] = {
        "",
        ".",
        "good.example.",
        ".good.example",
        "good..example",
        "evil.example\0.good.example"s,
        "good.example\0"s,
        "evil.example%00.good.example",
        "evil.example%2egood.example",
        "user@good.example",
        "good.example@evil.example",
        "good.example/",
        "good.example#",
        "good.example?",
        "good.example\\",
        "good.example\r\nHost: evil.example",
        "good.example ",
        " good.example",
        "good.example\t",
        "good,example",
        "*.good.example",
        "b\xc3\xbc"
        "cher.example",
        "good\xe3\x80\x82"
        "example",                  // an ideographic full stop
        "good\xc2\xad.example",     // a soft hyphen
        "\xef\xbd\x87ood.example",  // a wide g
        "-good.example",
        "good-.example",
        label + ".example",
        endless + "example",
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0X7F.0.0.1",
        "0177.0.0.1",
        "017700000001",
        "1.2.3.0x4",
        "0x",
        "good.example.0x",
        "good.example.1",
        "256.256.256.256",
        "169.254.169.254",
        "0",
        "::1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "::ffff:169.254.169.254",
        "[fe80::1%25eth0]",
        "[good.example]",
    };
    for (const std::string& host : refused) {
        EXPECT_FALSE(HostName::parse(host)) << testing::PrintToString(host);
    }
}

TEST(HostName, ARefusalShowsNoControlCharacterOfTheClient) {
    const auto refused = HostName::parse("a\r\nInjected: yes\x1b[31m");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, "bad_host");
    for (const char c : refused.error().message) {
        EXPECT_TRUE(c >= ' ' && c <= '~');
    }
}

TEST(EgressTarget, NeedsAPort) {
    EXPECT_EQ(parse_authority("a.example:65535", std::nullopt)->port, 65535);
    EXPECT_EQ(parse_authority("a.example", 80)->port, 80);
    for (const char* text :
         {"a.example",
          "a.example:",
          "a.example:0",
          "a.example:65536",
          "a.example:00000443",
          "a.example:+443",
          "a.example:-1",
          "a.example: 443",
          "a.example:443 ",
          "a.example:0x1bb",
          "a.example:443:443",
          "a.example:https"}) {
        EXPECT_FALSE(parse_authority(text, std::nullopt)) << text;
    }
    EXPECT_FALSE(parse_authority("a.example:", 80));
}

TEST(EgressRules, AnEmptyListAllowsNothing) {
    const EgressRules none = rules({});
    EXPECT_EQ(verdict(none, "pypi.org:443"), "host_not_allowed");
    const auto refused = none.check(*parse_authority("pypi.org:443", std::nullopt));
    EXPECT_THAT(refused.error().message, testing::HasSubstr("empty: nothing can be reached"));
}

TEST(EgressRules, ANameIsThatNameOnThePortsOfTheWeb) {
    const EgressRules policy = rules({"Good.Example"});
    EXPECT_EQ(verdict(policy, "good.example:443"), "");
    EXPECT_EQ(verdict(policy, "GOOD.example:80"), "");
    for (const char* other :
         {"good.example:22",
          "good.example:8443",
          "www.good.example:443",
          "notgood.example:443",
          "good.example.evil.example:443",
          "good.exampl:443",
          "example:443"}) {
        EXPECT_EQ(verdict(policy, other), "host_not_allowed") << other;
    }
}

TEST(EgressRules, AStarIsEverySubdomainAndNotTheDomain) {
    const EgressRules policy = rules({"*.good.example"});
    EXPECT_EQ(verdict(policy, "a.good.example:443"), "");
    EXPECT_EQ(verdict(policy, "a.b.good.example:80"), "");
    EXPECT_EQ(verdict(policy, "good.example:443"), "host_not_allowed");
    EXPECT_EQ(verdict(policy, "evilgood.example:443"), "host_not_allowed");
    EXPECT_EQ(verdict(policy, ".good.example:443"), "bad_host");
}

TEST(EgressRules, APortStandsForItselfAlone) {
    const EgressRules policy = rules({"good.example:8443"});
    EXPECT_EQ(verdict(policy, "good.example:8443"), "");
    EXPECT_EQ(verdict(policy, "good.example:443"), "host_not_allowed");
}

TEST(EgressRules, ARefusalSaysWhatIsAllowedAndIsShort) {
    std::vector<std::string> entries;
    for (int i = 0; i < 1000; ++i) {
        entries.push_back("host-number-" + std::to_string(i) + ".example");
    }
    const auto refused = rules(entries).check(*parse_authority("evil.example:443", std::nullopt));
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, testing::HasSubstr("evil.example:443 is not in"));
    EXPECT_THAT(refused.error().message, testing::HasSubstr("host-number-7.example"));
    EXPECT_LT(refused.error().message.size(), 1500U);
}

TEST(EgressRules, WrongEntriesAreRefusedWithTheRightForm) {
    for (const char* entry :
         {"",
          "*",
          "*.",
          "a.*.example",
          "*a.example",
          "http://a.example",
          "a.example/path",
          "a.example.",
          "10.0.0.1",
          "a.example:0",
          "a.example=",
          "a.example=10.0.0.0/33",
          "a.example=10.0.0.0/8,",
          "a.example=0.0.0.0/0",
          "a.example=::/0",
          "a.example=8.8.8.8",
          "a.example=169.254.169.254",
          "a.example=fe80::/10",
          "a.example=10.0.0.0/7",
          "a.example=172.16.0.0/11"}) {
        const auto parsed = EgressRules::parse({"ok.example", entry});
        ASSERT_FALSE(parsed) << entry;
        EXPECT_EQ(parsed.error().code, "bad_allowed_host");
        EXPECT_THAT(parsed.error().message, testing::HasSubstr("write \"example.com\""));
    }
}

// C86: a name that is allowed leads nowhere but to the Internet.
TEST(Cases, C86_AddressesThatAreNotPublicAreRefused) {
    const EgressRules policy = rules({"good.example"});
    for (const char* address :
         {"127.0.0.1",
          "127.8.8.8",
          "0.0.0.0",
          "0.1.2.3",
          "10.0.0.1",
          "172.16.0.1",
          "172.31.255.255",
          "192.168.1.1",
          "169.254.169.254",
          "169.254.0.1",
          "100.64.0.1",
          "100.100.100.200",
          "168.63.129.16",
          "192.0.0.192",
          "192.0.2.1",
          "198.18.0.1",
          "198.51.100.1",
          "203.0.113.1",
          "224.0.0.1",
          "239.255.255.255",
          "240.0.0.1",
          "255.255.255.255",
          "::",
          "::1",
          "::7f00:1",
          "::ffff:127.0.0.1",
          "::ffff:8.8.8.8",
          "fe80::1",
          "fec0::1",
          "fc00::1",
          "fd00:ec2::254",
          "ff02::1",
          "2001::1",
          "2001:db8::1",
          "2002:7f00:1::",
          "2002:0808:0808::",
          "64:ff9b::7f00:1",
          "64:ff9b::a9fe:a9fe",
          "64:ff9b:1::1",
          "100::1",
          "3fff::1",
          "5f00::1"}) {
        EXPECT_FALSE(dials(policy, "good.example:443", address)) << address;
        EXPECT_NE(special_address(make_address(address)), "") << address;
    }
    for (const char* address :
         {"8.8.8.8",
          "1.1.1.1",
          "172.15.255.255",
          "172.32.0.1",
          "100.63.255.255",
          "100.128.0.1",
          "192.0.1.1",
          "223.255.255.255",
          "2606:4700::1111",
          "2a00:1450::1",
          "64:ff9b::808:808"}) {
        EXPECT_TRUE(dials(policy, "good.example:443", address)) << address;
    }
}

TEST(EgressRules, PrivateAddressesCanBeNamedForAName) {
    const EgressRules policy =
        rules({"registry.internal:5000=10.1.0.0/16,fd12::/16", "*.lab=100.64.0.0/10,fd00::/8"});
    EXPECT_TRUE(dials(policy, "registry.internal:5000", "10.1.2.3"));
    EXPECT_TRUE(dials(policy, "registry.internal:5000", "fd12::3"));
    EXPECT_FALSE(dials(policy, "registry.internal:5000", "10.2.0.1"));
    EXPECT_FALSE(dials(policy, "registry.internal:5000", "::ffff:10.1.2.3"));
    EXPECT_FALSE(dials(policy, "registry.internal:5000", "8.8.8.8"));
    EXPECT_FALSE(dials(policy, "registry.internal:443", "10.1.2.3"));
    EXPECT_TRUE(dials(policy, "a.lab:80", "100.64.1.1"));
    EXPECT_FALSE(dials(policy, "a.lab:80", "100.100.100.200"));
    EXPECT_FALSE(dials(policy, "a.lab:80", "fd00:ec2::254"));
}

TEST(EgressRules, ANameUnderTwoEntriesMayUseWhatEitherAllows) {
    const EgressRules policy = rules({"*.corp.example", "db.corp.example:443=10.0.0.0/8"});
    EXPECT_TRUE(dials(policy, "db.corp.example:443", "10.0.0.1"));
    EXPECT_TRUE(dials(policy, "db.corp.example:443", "8.8.8.8"));
    EXPECT_FALSE(dials(policy, "db.corp.example:80", "10.0.0.1"));
    EXPECT_FALSE(dials(policy, "www.corp.example:443", "10.0.0.1"));
}

TEST(AddressRange, ReadsWhatItWrites) {
    EXPECT_EQ(AddressRange::parse("10.0.0.0/8")->text(), "10.0.0.0/8");
    EXPECT_EQ(AddressRange::parse("fd00::1")->text(), "fd00::1/128");
    for (const char* text :
         {"", "/8", "10.0.0.0/", "10.0.0.0/a", "10.0.0.0/8 ", "10.0/8", "fe80::1%lo"}) {
        EXPECT_FALSE(AddressRange::parse(text)) << text;
    }
}

}  // namespace
}  // namespace ars::sandbox
