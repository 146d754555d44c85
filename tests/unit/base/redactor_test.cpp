#include "base/redactor.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace ars::base {
namespace {

struct Secret {
    std::string name;
    std::string value;
};

Redactor redactor_of(const std::vector<Secret>& secrets) {
    Redactor redactor;
    for (const Secret& secret : secrets) {
        redactor.add(secret.name, secret.value);
    }
    return redactor;
}

// The same, byte by byte: covers each occurrence and names each covered stretch.
std::string naive(const std::vector<Secret>& secrets, const std::string& text) {
    struct Found {
        std::size_t begin;
        const Secret* secret;
    };
    std::vector<Found> all;
    for (std::size_t i = 0; i < text.size(); ++i) {
        for (const Secret& secret : secrets) {
            if (secret.value.size() >= kLeastSecretBytes &&
                text.compare(i, secret.value.size(), secret.value) == 0) {
                all.push_back({i, &secret});
            }
        }
    }
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
        const Secret* longest = nullptr;
        std::size_t end = i;
        for (const Found& found : all) {
            const bool in = found.begin == i || (found.begin > i && found.begin < end);
            if (in) {
                end = std::max(end, found.begin + found.secret->value.size());
                if (longest == nullptr || found.secret->value.size() > longest->value.size()) {
                    longest = found.secret;
                }
            }
        }
        if (longest == nullptr) {
            out += text[i++];
        } else {
            out += "[redacted:" + longest->name + "]";
            i = end;
        }
    }
    return out;
}

TEST(Redactor, PutsAMarkInThePlaceOfEachOccurrence) {
    const Redactor redactor = redactor_of({{"KEY", "sk-12345678"}, {"TOKEN", "abcdefgh"}});
    EXPECT_EQ(
        redactor.redact("a sk-12345678 b abcdefgh abcdefgh"),
        "a [redacted:KEY] b [redacted:TOKEN] [redacted:TOKEN]"
    );
    EXPECT_EQ(redactor.redact("sk-1234567 abcdefg"), "sk-1234567 abcdefg");
    EXPECT_EQ(redactor.redact("sk-12345678sk-12345678"), "[redacted:KEY][redacted:KEY]");
    EXPECT_EQ(redactor.redact(""), "");
    EXPECT_TRUE(Redactor().empty());
    EXPECT_EQ(Redactor().redact("anything"), "anything");
}

TEST(Redactor, LeavesShortValuesAlone) {
    const Redactor redactor = redactor_of({{"SHORT", "1234567"}, {"PADDED", "  1234567\n"}});
    EXPECT_TRUE(redactor.empty());
    EXPECT_EQ(redactor.redact("1234567"), "1234567");
}

TEST(Redactor, LeavesNothingOfValuesThatOverlap) {
    const Redactor redactor = redactor_of(
        {{"SHORT", "abcdefgh"}, {"LONG", "efghijklmn"}, {"INNER", "hijklmno"}, {"A", "aaaaaaaa"}}
    );
    EXPECT_EQ(redactor.redact("<abcdefghijklmn>"), "<[redacted:LONG]>");
    EXPECT_EQ(redactor.redact("<abcdefghijklmno>"), "<[redacted:LONG]>");
    EXPECT_EQ(redactor.redact("<" + std::string(29, 'a') + ">"), "<[redacted:A]>");
}

TEST(Redactor, FindsAValueAsJsonWritesIt) {
    const std::string value = "pass\"word\\1\tx";
    const Redactor redactor = redactor_of({{"DB", value}});
    const std::string line = boost::json::serialize(boost::json::object{{"text", value}});
    EXPECT_EQ(redactor.redact(line), R"({"text":"[redacted:DB]"})");
    EXPECT_EQ(redactor.redact(value), "[redacted:DB]");
}

TEST(Redactor, FindsTheLinesOfAValueAndItWithoutSpaceAroundIt) {
    const Redactor redactor = redactor_of({{"PEM", " begin key\nMIIEvQIBADAN\r\nxyz\n"}});
    EXPECT_EQ(
        redactor.redact("1\tbegin key\n2\tMIIEvQIBADAN\n3\txyz"),
        "1\t[redacted:PEM]\n2\t[redacted:PEM]\n3\txyz"
    );
    EXPECT_EQ(redactor.redact("<begin key\nMIIEvQIBADAN\r\nxyz>"), "<[redacted:PEM]>");
}

TEST(Redactor, GoesThroughAllTextsOfAJsonValueButNotItsKeys) {
    const Redactor redactor = redactor_of({{"KEY", "sk-12345678"}});
    boost::json::object object =
        boost::json::parse(
            R"({"sk-12345678": 1, "a": "x sk-12345678", "b": [true, {"c": "sk-12345678"}, "other"]})"
        )
            .as_object();
    redactor.redact(object);
    EXPECT_EQ(
        object,
        boost::json::parse(
            R"({"sk-12345678": 1, "a": "x [redacted:KEY]",
                "b": [true, {"c": "[redacted:KEY]"}, "other"]})"
        )
    );
}

// Few letters, so that values start alike, repeat and overlap, in themselves and with each other.
TEST(Redactor, DoesWhatANaiveOneDoes) {
    std::mt19937 random(20'26);
    const auto number = [&](int least, int most) {
        return std::uniform_int_distribution<int>(least, most)(random);
    };
    const auto word = [&](int size, char letters) {
        std::string out;
        for (int i = 0; i < size; ++i) {
            out += static_cast<char>('a' + number(0, letters - 1));
        }
        return out;
    };
    int changed = 0;
    for (int round = 0; round < 20'000; ++round) {
        const auto letters = static_cast<char>(number(1, 3));
        std::vector<Secret> secrets;
        for (int i = number(0, 6); i > 0; --i) {
            const std::string value = word(number(5, 14), letters);
            const bool known = std::ranges::find(secrets, value, &Secret::value) != secrets.end();
            if (!known) {
                secrets.push_back({"S" + std::to_string(i), value});
            }
        }
        std::string text = word(number(0, 40), letters);
        for (int i = number(0, 3); i > 0 && !secrets.empty(); --i) {
            const auto& value = secrets[static_cast<std::size_t>(number(0, 5)) % secrets.size()];
            text.insert(
                static_cast<std::size_t>(number(0, static_cast<int>(text.size()))), value.value
            );
        }
        const std::string redacted = redactor_of(secrets).redact(text);
        ASSERT_EQ(redacted, naive(secrets, text)) << text;
        changed += redacted == text ? 0 : 1;
    }
    EXPECT_GT(changed, 5000);
}

// What a search that starts anew after each byte would need hours for.
TEST(Redactor, IsLinearWhereValuesOverlapALot) {
    std::vector<Secret> secrets;
    for (int i = 0; i < 100; ++i) {
        secrets.push_back({"A" + std::to_string(i), std::string(30'000, 'a') + std::to_string(i)});
    }
    const std::string text(256 * 1024, 'a');
    EXPECT_EQ(redactor_of(secrets).redact(text), text);
    secrets.push_back({"ALL", std::string(30'000, 'a')});
    EXPECT_EQ(redactor_of(secrets).redact(text), "[redacted:ALL]");
}

}  // namespace
}  // namespace ars::base
