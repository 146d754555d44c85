#include "base/digest.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace ars::base {
namespace {

// Vectors of FIPS 180-4.
TEST(Sha256, GivesThePublishedValues) {
    EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(
        sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
    EXPECT_EQ(
        sha256_hex(std::string(1'000'000, 'a')),
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
    );
}

TEST(Sha256, ReadsPastNulBytes) {
    EXPECT_NE(sha256_hex(std::string_view("a\0b", 3)), sha256_hex(std::string_view("a\0c", 3)));
}

TEST(RandomUuid, HasTheShapeOfVersionFour) {
    for (int i = 0; i < 64; ++i) {
        const std::string id = random_uuid();
        ASSERT_EQ(id.size(), 36U);
        for (std::size_t at = 0; at < id.size(); ++at) {
            if (at == 8 || at == 13 || at == 18 || at == 23) {
                EXPECT_EQ(id[at], '-');
            } else {
                EXPECT_NE(std::string("0123456789abcdef").find(id[at]), std::string::npos) << id;
            }
        }
        EXPECT_EQ(id[14], '4');
        EXPECT_NE(std::string("89ab").find(id[19]), std::string::npos) << id;
    }
}

TEST(RandomUuid, DoesNotRepeat) {
    std::set<std::string> seen;
    for (int i = 0; i < 1000; ++i) {
        EXPECT_TRUE(seen.insert(random_uuid()).second);
    }
}

TEST(EqualConstantTime, AgreesWithEquality) {
    EXPECT_TRUE(equal_constant_time("", ""));
    EXPECT_TRUE(equal_constant_time("secret", "secret"));
    EXPECT_FALSE(equal_constant_time("secret", "secreT"));
    EXPECT_FALSE(equal_constant_time("secret", "secre"));
    EXPECT_FALSE(equal_constant_time("", "s"));
}

// RFC 4231, cases 1, 2 and 6.
TEST(Digest, HmacOfKnownTexts) {
    EXPECT_EQ(
        hmac_sha256_hex(std::string(20, '\x0b'), "Hi There"),
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
    );
    EXPECT_EQ(
        hmac_sha256_hex("Jefe", "what do ya want for nothing?"),
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    );
    EXPECT_EQ(
        hmac_sha256_hex(
            std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"
        ),
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
    );
}

}  // namespace
}  // namespace ars::base
