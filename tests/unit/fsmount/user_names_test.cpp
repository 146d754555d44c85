#include "fsmount/user_names.hpp"

#include <gtest/gtest.h>

namespace ars::fsmount {
namespace {

TEST(UserNames, GemIsAddedToTheImagesUsers) {
    EXPECT_EQ(
        passwd_with_gem("root:x:0:0:root:/root:/bin/bash\n"),
        "root:x:0:0:root:/root:/bin/bash\ngem:x:1000:1000:gem:/home/gem:/bin/sh\n"
    );
    EXPECT_EQ(
        group_with_gem("root:x:0:\nsudo:x:27:a,b\n"), "root:x:0:\nsudo:x:27:a,b\ngem:x:1000:\n"
    );
    EXPECT_EQ(group_with_gem(""), "gem:x:1000:\n");
}

TEST(UserNames, AnotherNameOf1000AndAnotherIdOfGemAreLeftOut) {
    EXPECT_EQ(
        passwd_with_gem("app:x:1000:1000::/app:/bin/sh\ngem:x:5:5::/:/bin/false\nb:x:10000:1000:::"
        ),
        "b:x:10000:1000:::\ngem:x:1000:1000:gem:/home/gem:/bin/sh\n"
    );
    EXPECT_EQ(group_with_gem("node:x:1000:\n\nnonsense\n:\n"), "nonsense\n:\ngem:x:1000:\n");
}

}  // namespace
}  // namespace ars::fsmount
