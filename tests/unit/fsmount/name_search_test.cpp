// K148: what a search finds and what it leaves alone, whatever a tool has built.
#include "fsmount/name_search.hpp"

#include "tests/unit/fsmount/workspace_fixture.hpp"

#include <filesystem>

namespace ars::fsmount {
namespace {

class NameSearchTest : public ::testing::Test {
  protected:
    using Names = std::vector<std::string>;

    void file(const std::string& relative) const {
        const std::filesystem::path path = place_.path() + "/" + relative;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << "x";
    }
    void link(const std::string& target, const std::string& relative) const {
        std::filesystem::create_symlink(target, place_.path() + "/" + relative);
    }
    // What holds `text` in its path. `visited_` are the directories that were met.
    Names find(const std::string& text, const SearchBounds& bounds = {}) {
        const base::Fd start(::open(place_.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
        visited_.clear();
        const auto matches = [&text](const std::string& relative) {
            return relative.contains(text);
        };
        const auto passes_over = [this](const std::string& relative) {
            visited_.push_back(relative);
            return relative.ends_with("skipped");
        };
        const NameSearch search = search_names(start, bounds, {matches, passes_over});
        complete_ = search.complete;
        Names out;
        for (const FoundName& found : search.found) {
            out.push_back(found.relative);
        }
        return out;
    }

    TemporaryDirectory place_;
    Names visited_;
    bool complete_ = false;
};

TEST_F(NameSearchTest, K148FindsNearNamesFirstAndNotWhatIsPassedOver) {
    file("z/y/hit");
    file("z/hit");
    file("hit");
    file("a/hit/below");
    file("skipped/hit");
    file("b/skipped/hit");
    EXPECT_EQ(find("hit"), (Names{"hit", "a/hit", "z/hit", "a/hit/below", "z/y/hit"}));
    EXPECT_TRUE(complete_);
}

TEST_F(NameSearchTest, K148LinksAreFoundAndNotEntered) {
    file("real/hit");
    link("real", "hit-link");
    link("..", "real/up");
    link("/etc", "etc");
    EXPECT_EQ(find("hit"), (Names{"hit-link", "real/hit"}));
    EXPECT_TRUE(find("passwd").empty());
    EXPECT_EQ(visited_, (Names{"real"}));
    EXPECT_TRUE(complete_);
}

TEST_F(NameSearchTest, K148DepthIsBounded) {
    std::string deep;
    for (int i = 0; i < 20; ++i) {
        deep += "d/";
        file(deep + "hit");
    }
    EXPECT_EQ(find("hit").size(), 15U);  // directories at 1 to 15 are read
    EXPECT_FALSE(complete_);
    EXPECT_EQ(find("hit", {.depth = 20}).size(), 20U);
    EXPECT_TRUE(complete_);
}

TEST_F(NameSearchTest, K148AWideDirectoryIsReadInPart) {
    for (int i = 0; i < 40; ++i) {
        file("wide/" + std::to_string(i) + "/x");
    }
    file("next/hit");
    EXPECT_EQ(find("hit", {.width = 7}), (Names{"next/hit"}));
    EXPECT_FALSE(complete_);
    EXPECT_EQ(visited_.size(), 2U + 7U);  // the others were never met
    EXPECT_EQ(find("hit", {.width = 40}), (Names{"next/hit"}));
    EXPECT_TRUE(complete_);
}

TEST_F(NameSearchTest, K148StopsAtEachBudget) {
    for (int i = 10; i < 50; ++i) {
        for (int j = 0; j < 5; ++j) {
            file(std::to_string(i) + "/" + std::to_string(j) + "/hit");
        }
    }
    EXPECT_EQ(find("hit").size(), 200U);
    EXPECT_TRUE(complete_);
    // The start and two of its directories: 40 and 10 are met.
    EXPECT_TRUE(find("hit", {.directories = 3}).empty());
    EXPECT_EQ(visited_.size(), 50U);
    EXPECT_FALSE(complete_);
    EXPECT_TRUE(find("hit", {.entries = 43}).empty());
    EXPECT_EQ(visited_.size(), 43U);
    EXPECT_FALSE(complete_);
    EXPECT_EQ(find("1", {.results = 3}), (Names{"10", "11", "12"}));
    EXPECT_LE(visited_.size(), 4U);
    EXPECT_FALSE(complete_);
    // As many as there are is no bound that was met.
    EXPECT_EQ(find("hit", {.results = 200}).size(), 200U);
    EXPECT_TRUE(complete_);
    EXPECT_EQ(find("hit", {.directories = 241}).size(), 200U);
    EXPECT_TRUE(complete_);
}

TEST_F(NameSearchTest, ADirectoryThatMayNotBeReadIsSaid) {
    file("closed/hit");
    file("open/hit");
    ::chmod(place_.path().c_str(), 0755);
    ::chmod((place_.path() + "/closed").c_str(), 0);
    as_gem([this] {
        EXPECT_EQ(find("hit"), (Names{"open/hit"}));
        EXPECT_FALSE(complete_);
    });
    ::chmod((place_.path() + "/closed").c_str(), 0700);
}

}  // namespace
}  // namespace ars::fsmount
