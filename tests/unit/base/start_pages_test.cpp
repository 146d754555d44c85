#include "base/start_pages.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <string>

namespace ars::base {
namespace {

// Of files, in KiB: what this process has of its program in memory.
std::size_t resident_of_files() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
        if (word == "RssFile:") {
            std::size_t kib = 0;
            status >> kib;
            return kib;
        }
    }
    return 0;
}

TEST(StartPages, TheProgramGoesOnWithLessOfItInMemory) {
    const std::size_t before = resident_of_files();
    let_go_of_start_pages();
    const std::size_t after = resident_of_files();
    EXPECT_GT(after, 0U);
    EXPECT_LT(after, before);
}

}  // namespace
}  // namespace ars::base
