// Paths::within(): what requests about a thread's files may name, make and remove.
#include "fsmount/paths.hpp"
#include "tests/unit/fsmount/workspace_fixture.hpp"

#include <sys/stat.h>

namespace ars::fsmount {
namespace {

class WorkdirPathsTest : public WorkspaceTest {
  protected:
    WorkdirPathsTest() : paths_(Paths::within(workspace_, "projects/p1")) {
        EXPECT_TRUE(workspace_->make_workdir("projects/p1"));
        EXPECT_TRUE(workspace_->make_workdir("projects/p2"));
        put(user_data("projects/p2/other.txt"), "other");
    }
    [[nodiscard]] std::string work(const std::string& rest) const {
        return user_data("projects/p1/" + rest);
    }
    [[nodiscard]] std::string read(const std::string& path) const {
        const auto file = paths_.open_read(path);
        return file ? base::read_to_end(file->fd.get(), 1 << 20).value_or("!unreadable")
                    : "!" + file.error().code;
    }
    template <class T>
    static std::string verdict(const base::Result<T>& result) {
        return result ? "ok" : result.error().code;
    }
    [[nodiscard]] std::string remove(const std::string& path) const {
        return verdict(paths_.remove(path, base::Deadline::never()));
    }
    [[nodiscard]] NewFile file_with(const std::string& text) const {
        auto file = paths_.begin_file();
        EXPECT_TRUE(file && file->write(text, "test"));
        return std::move(*file);
    }

    Paths paths_;
};

TEST_F(WorkdirPathsTest, K150WhatLiesElsewhereIsAnEscapeAlsoBehindALink) {
    put(work("a.txt"), "a");
    ::mkdir(work("dir").c_str(), 0700);
    put(work("dir/b.txt"), "b");
    link("../p2/other.txt", "projects/p1/out");
    link("/home/gem/user-data/projects/p2", "projects/p1/out-dir");
    link("/etc/passwd", "projects/p1/passwd");
    link("dir/b.txt", "projects/p1/in");
    link("/home/gem/user-data/projects/p1/dir", "projects/p1/in-dir");
    put(skills("s.md"), "skill");
    link("/home/gem/skills/s.md", "projects/p1/skill");
    EXPECT_EQ(read("a.txt"), "a");
    EXPECT_EQ(read("in"), "b");
    EXPECT_EQ(read("in-dir/b.txt"), "b");
    for (const char* path :
         {"out",
          "out-dir/other.txt",
          "passwd",
          "skill",
          "out-dir/missing",
          "out-dir/missing/x",
          "out-dir/other.txt/x",
          "/home/gem/user-data/projects/p2/other.txt",
          "/home/gem/user-data/projects/p10/x",
          "/home/gem/skills/s.md"}) {
        EXPECT_EQ(read(path), "!path_escape") << path;
    }
    EXPECT_EQ(verdict(paths_.write_file("out", "x", {true, {}})), "path_escape");
    EXPECT_EQ(get(user_data("projects/p2/other.txt")), "other");
    EXPECT_EQ(paths_.list_directory("out-dir", "", 10).error().code, "path_escape");
    EXPECT_EQ(paths_.list_directory("in-dir", "", 10)->total, 1U);
}

TEST_F(WorkdirPathsTest, AWorkdirThatIsNotMadeYetIsMissingUntilAFileMakesIt) {
    const Paths later = Paths::within(workspace_, "made/later");
    EXPECT_EQ(verdict(later.open_read("a.txt")), "not_found");
    EXPECT_EQ(later.list_directory(".", "", 10).error().code, "not_found");
    NewFile file = file_with("a");
    EXPECT_EQ(verdict(later.replace_with(file, "a.txt")), "ok");
    EXPECT_EQ(get(user_data("made/later/a.txt")), "a");
}

TEST_F(WorkdirPathsTest, AWorkdirThatBecameALinkIsAnEscape) {
    ASSERT_EQ(::rmdir(work("").c_str()), 0);
    link("p2", "projects/p1");
    EXPECT_EQ(read("other.txt"), "!path_escape");
    EXPECT_EQ(remove("other.txt"), "path_escape");
    EXPECT_TRUE(exists(user_data("projects/p2/other.txt")));
}

TEST_F(WorkdirPathsTest, K147AReplacedFileKeepsItsModeAndALinkIsRefused) {
    put(work("a.txt"), "old");
    ::chmod(work("a.txt").c_str(), 0751);
    link("a.txt", "projects/p1/link");
    NewFile next = file_with("new");
    EXPECT_EQ(verdict(paths_.replace_with(next, "link")), "not_regular_file");
    EXPECT_EQ(get(work("a.txt")), "old");
    const auto replaced = paths_.replace_with(next, "a.txt");
    ASSERT_TRUE(replaced);
    EXPECT_FALSE(*replaced);
    EXPECT_EQ(get(work("a.txt")), "new");
    EXPECT_EQ(mode_of(work("a.txt")), 0751U);
    NewFile fresh = file_with("fresh");
    EXPECT_TRUE(*paths_.replace_with(fresh, "sub/dir/b.txt"));
    EXPECT_EQ(mode_of(work("sub/dir/b.txt")), 0600U);
    EXPECT_EQ(mode_of(work("sub")), 0700U);
}

TEST_F(WorkdirPathsTest, AFileThatIsNeverNamedLeavesNothing) {
    {
        const NewFile gone = file_with("gone");
    }
    EXPECT_EQ(paths_.list_directory(".", "", 10)->total, 0U);
    EXPECT_EQ(Paths(workspace_, "/home/gem/user-data").list_directory(".", "", 10)->total, 1U);
}

TEST_F(WorkdirPathsTest, K150OfSeveralFilesAllGetTheirNamesOrNone) {
    put(work("taken"), "old");
    link("nowhere", "projects/p1/link");
    for (const char* last : {"taken", "link"}) {
        std::vector<NamedFile> files;
        files.push_back({file_with("1"), "one"});
        files.push_back({file_with("2"), last});
        EXPECT_EQ(verdict(paths_.publish_all(files)), "already_exists");
        EXPECT_FALSE(exists(work("one")));
        EXPECT_FALSE(exists(work("nowhere")));
    }
    EXPECT_EQ(get(work("taken")), "old");
    // A name that is taken only when its turn comes: both are checked before either is given.
    std::vector<NamedFile> twice;
    twice.push_back({file_with("1"), "same"});
    twice.push_back({file_with("2"), "same"});
    EXPECT_EQ(verdict(paths_.publish_all(twice)), "already_exists");
    EXPECT_FALSE(exists(work("same")));
    std::vector<NamedFile> files;
    files.push_back({file_with("1"), "one"});
    files.push_back({file_with("2"), "two"});
    EXPECT_EQ(verdict(paths_.publish_all(files)), "ok");
    EXPECT_EQ(get(work("one")) + get(work("two")), "12");
    std::vector<NamedFile> lost;
    lost.push_back({file_with("1"), "missing/one"});
    EXPECT_EQ(verdict(paths_.publish_all(lost)), "not_found");
}

TEST_F(WorkdirPathsTest, K147RemovesFilesLinksAndTreesButNeverTheRoot) {
    put(work("a.txt"), "a");
    ::mkdir(work("dir").c_str(), 0700);
    ::mkdir(work("dir/sub").c_str(), 0500);
    put(work("dir/b.txt"), "b");
    link("../p2/other.txt", "projects/p1/out");
    link(".", "projects/p1/self");
    link("../p2", "projects/p1/out-dir");
    ::mkfifo(work("fifo").c_str(), 0600);
    EXPECT_EQ(remove("/home/gem/user-data/projects/p1"), "is_root");
    EXPECT_EQ(remove("self/"), "is_root");
    EXPECT_EQ(remove("out-dir/other.txt"), "path_escape");
    EXPECT_EQ(remove("out-dir/"), "path_escape");
    EXPECT_EQ(remove("missing"), "not_found");
    for (const char* path : {"a.txt", "dir", "out", "self", "out-dir", "fifo"}) {
        EXPECT_EQ(remove(path), "ok") << path;
    }
    EXPECT_EQ(paths_.list_directory(".", "", 10)->total, 0U);
    EXPECT_EQ(get(user_data("projects/p2/other.txt")), "other");
}

TEST_F(WorkdirPathsTest, ATreeThatIsNotGoneInTimeSaysSo) {
    ::mkdir(work("dir").c_str(), 0700);
    put(work("dir/b.txt"), "b");
    const auto removed = paths_.remove("dir", base::Deadline::after(base::milliseconds(-1)));
    EXPECT_EQ(verdict(removed), "not_removed");
    EXPECT_EQ(remove("dir"), "ok");
}

TEST_F(WorkdirPathsTest, MakesOneDirectory) {
    EXPECT_EQ(verdict(paths_.make_directory("a")), "ok");
    EXPECT_EQ(mode_of(work("a")), 0700U);
    EXPECT_EQ(verdict(paths_.make_directory("a")), "already_exists");
    EXPECT_EQ(verdict(paths_.make_directory("b/c")), "not_found");
    link("a", "projects/p1/link");
    EXPECT_EQ(verdict(paths_.make_directory("link")), "already_exists");
    EXPECT_EQ(verdict(paths_.make_directory("link/b")), "ok");
}

}  // namespace
}  // namespace ars::fsmount
