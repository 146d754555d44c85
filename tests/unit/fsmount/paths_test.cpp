#include "fsmount/paths.hpp"

#include "fsmount/tree_walk.hpp"
#include "tests/unit/fsmount/workspace_fixture.hpp"

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

namespace ars::fsmount {
namespace {

// For the calling thread: openat2 answers `error` from now on.
bool refuse_openat2(std::uint32_t error) {
    sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),  // the call's number
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{std::size(code), code};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

class PathsTest : public WorkspaceTest, public ::testing::WithParamInterface<Resolver> {
  protected:
    PathsTest() : paths_(workspace_, "/home/gem/user-data", GetParam()) {}

    std::string read(const std::string& path) const {
        const auto file = paths_.open_read(path);
        if (!file) {
            return "!" + file.error().code;
        }
        return base::read_to_end(file->fd.get(), 1 << 20).value_or("!unreadable");
    }
    std::string write(const std::string& path, const std::string& text, bool overwrite = false)
        const {
        const auto written = paths_.write_file(path, text, {overwrite, {}});
        return written ? (*written ? "new" : "replaced") : "!" + written.error().code;
    }

    Paths paths_;
};

INSTANTIATE_TEST_SUITE_P(
    BothResolvers,
    PathsTest,
    ::testing::Values(Resolver::kernel, Resolver::walk),
    [](const auto& param) { return param.param == Resolver::kernel ? "Openat2" : "Walk"; }
);

TEST_P(PathsTest, ReadsAFileByRelativeAndAbsolutePath) {
    make_directory("d");
    put(user_data("d/f"), "hello");
    EXPECT_EQ(read("d/f"), "hello");
    EXPECT_EQ(read("/home/gem/user-data/d/f"), "hello");
    EXPECT_EQ(read("d/missing"), "!not_found");
    EXPECT_EQ(read("missing/f"), "!not_found");
    EXPECT_EQ(read("d/f/x"), "!not_a_directory");
}

TEST_P(PathsTest, C51ALinkOutOfTheRootIsAnEscape) {
    link("/etc/passwd", "l");
    link("/", "d");
    link("../../../../../../etc/passwd", "relative");
    EXPECT_EQ(read("l"), "!path_escape");
    EXPECT_EQ(read("d/etc/passwd"), "!path_escape");
    EXPECT_EQ(read("relative"), "!path_escape");
    EXPECT_EQ(write("l", "x", true), "!path_escape");
    EXPECT_EQ(write("d/tmp/ars-escape", "x"), "!path_escape");
    EXPECT_FALSE(paths_.open_directory("d"));
    const auto page = paths_.list_directory("/home/gem/user-data", "", 10);
    ASSERT_TRUE(page);
    ASSERT_EQ(page->entries.size(), 3U);
    EXPECT_EQ(page->entries[1].name, "l");
    EXPECT_EQ(page->entries[1].info.kind, FileKind::symlink);
    EXPECT_EQ(page->entries[1].link_target, "/etc/passwd");
}

TEST_P(PathsTest, C52WritingThroughADanglingLinkCreatesNothingOutside) {
    const std::string outside = directory_.path() + "/outside.txt";
    link(outside, "w");
    link("../../../../outside.txt", "w2");
    EXPECT_EQ(write("w", "x"), "!path_escape");
    EXPECT_EQ(write("w2", "x", true), "!path_escape");
    EXPECT_EQ(paths_.create_file("w").error().code, "path_escape");
    EXPECT_FALSE(exists(outside));
    link("inside.txt", "ok");
    EXPECT_EQ(write("ok", "x"), "new");
    EXPECT_EQ(get(user_data("inside.txt")), "x");
}

TEST_P(PathsTest, C53ASlashlessLinkGetsTheSameRefusal) {
    link("/etc/passwd", "link.txt");
    EXPECT_EQ(read("link.txt"), "!path_escape");
}

TEST_P(PathsTest, C102LinksBetweenTheRootsFollowTheRightsOfTheirTarget) {
    ::mkdir(skills("x").c_str(), 0700);
    put(skills("x/SKILL.md"), "skill");
    link("/home/gem/skills/x", "s");
    link("../skills/x", "s2");
    link("/srv/repo", "r");
    link("/home/gem/user-data/real", "absolute");
    make_directory("real");
    put(user_data("real/f"), "f");
    EXPECT_EQ(read("s/SKILL.md"), "skill");
    EXPECT_EQ(read("s2/SKILL.md"), "skill");
    EXPECT_EQ(read("absolute/f"), "f");
    EXPECT_EQ(read("r/x"), "!path_escape");
    EXPECT_EQ(write("s/new", "x"), "!read_only");
    EXPECT_EQ(write("s2/SKILL.md", "x", true), "!read_only");
    EXPECT_EQ(write("absolute/new", "x"), "new");
    EXPECT_EQ(get(user_data("real/new")), "x");
}

TEST_P(PathsTest, K138SkillsCanBeReadButNotWritten) {
    put(skills("f"), "text");
    EXPECT_EQ(read("/home/gem/skills/f"), "text");
    EXPECT_EQ(write("/home/gem/skills/g", "x"), "!read_only");
    EXPECT_EQ(write("/home/gem/skills/d/g", "x"), "!not_found");
    EXPECT_EQ(write("/home/gem/user-data/uploads/f", "x"), "new");
    EXPECT_EQ(write("/home/gem/user-data/outputs/f", "x"), "new");
}

TEST_P(PathsTest, C70WhatIsNoRegularFileIsRefusedAtOnce) {
    ASSERT_EQ(::mkfifo(user_data("fifo").c_str(), 0600), 0);
    make_directory("dir");
    const base::Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s", user_data("sock").c_str());
    ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const auto begin = std::chrono::steady_clock::now();
    for (const char* name : {"fifo", "dir", "sock"}) {
        EXPECT_EQ(read(name), "!not_regular_file") << name;
        EXPECT_EQ(write(name, "x", true), "!not_regular_file") << name;
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
    EXPECT_EQ(write("/home/gem/user-data", "x", true), "!not_regular_file");
    EXPECT_NE(paths_.open_read("fifo").error().message.find("FIFO"), std::string::npos);
}

TEST_P(PathsTest, K139MissingParentsAreMadeButNotThroughALink) {
    EXPECT_EQ(write("a/b/c/f", "x"), "new");
    EXPECT_EQ(get(user_data("a/b/c/f")), "x");
    link("a", "l");
    EXPECT_EQ(write("l/new/f", "x"), "!link_in_path");
    EXPECT_FALSE(exists(user_data("a/new")));
    EXPECT_EQ(write("l/f", "x"), "new");
}

TEST_P(PathsTest, K147ModesDoNotDependOnTheUmask) {
    const mode_t old = ::umask(0);
    EXPECT_EQ(write("open/f", "x"), "new");
    ::umask(0177);
    EXPECT_EQ(write("closed/f", "x"), "new");
    ::umask(old);
    for (const char* name : {"open", "closed"}) {
        EXPECT_EQ(mode_of(user_data(name)), 0700U);
        EXPECT_EQ(mode_of(user_data(std::string(name) + "/f")), 0600U);
    }
}

TEST_P(PathsTest, K147WithoutOverwriteAFileOrLinkAtTheNameIsKept) {
    put(user_data("f"), "old");
    link("f", "l");
    EXPECT_EQ(write("f", "new"), "!already_exists");
    EXPECT_EQ(write("l", "new"), "!already_exists");
    EXPECT_EQ(paths_.create_file("l").error().code, "already_exists");
    EXPECT_EQ(get(user_data("f")), "old");
    EXPECT_EQ(write("/home/gem/user-data", "x", true), "!not_regular_file");
}

TEST_P(PathsTest, C78OverwritingKeepsTheModeAndLeavesNoTemporaryFile) {
    put(user_data("run.sh"), "old");
    ::chmod(user_data("run.sh").c_str(), 0750);
    EXPECT_EQ(write("run.sh", "new", true), "replaced");
    EXPECT_EQ(get(user_data("run.sh")), "new");
    EXPECT_EQ(mode_of(user_data("run.sh")), 0750U);
    EXPECT_EQ(paths_.list_directory(".", "", 10)->total, 1U);
}

TEST_P(PathsTest, C78AFullFileSystemIsTypedAndKeepsTheOldContent) {
    put(user_data("f"), "old");
    const rlimit old_limit = [] {
        rlimit limit{};
        ::getrlimit(RLIMIT_FSIZE, &limit);
        return limit;
    }();
    const auto old_handler = ::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{1000, old_limit.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
    EXPECT_EQ(write("f", std::string(5000, 'x'), true), "!file_too_large");
    ::setrlimit(RLIMIT_FSIZE, &old_limit);
    ::signal(SIGXFSZ, old_handler);
    EXPECT_EQ(get(user_data("f")), "old");
    EXPECT_EQ(paths_.list_directory(".", "", 10)->total, 1U);
}

TEST_P(PathsTest, AFileThatChangedSinceItWasReadIsNotReplaced) {
    put(user_data("f"), "one");
    const auto stamp = paths_.open_read("f")->info.stamp;
    put(user_data("f"), "other text");
    const auto written = paths_.write_file("f", "mine", {true, stamp});
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, "changed_meanwhile");
    EXPECT_TRUE(paths_.write_file("f", "mine", {true, paths_.open_read("f")->info.stamp}));
}

TEST_P(PathsTest, C72ALargeDirectoryIsListedInPages) {
    make_directory("many");
    constexpr int kCount = 5'000;  // file_cases_test has 100,000
    const base::Fd directory(::open(user_data("many").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (int i = 0; i < kCount; ++i) {
        const base::Fd made(
            ::openat(directory.get(), std::to_string(i).c_str(), O_CREAT | O_WRONLY, 0600)
        );
    }
    std::string after;
    std::size_t seen = 0;
    for (int pages = 0; pages < 20; ++pages) {
        const auto page = paths_.list_directory("many", after, 700);
        ASSERT_TRUE(page);
        EXPECT_EQ(page->total, static_cast<std::uint64_t>(kCount));
        ASSERT_LE(page->entries.size(), 700U);
        for (const auto& entry : page->entries) {
            EXPECT_LT(after, entry.name);
            after = entry.name;
        }
        seen += page->entries.size();
        EXPECT_EQ(page->cursor, page->after_these == 0 ? "" : after);
        EXPECT_EQ(page->after_these, static_cast<std::uint64_t>(kCount) - seen);
        if (page->after_these == 0) {
            break;
        }
    }
    EXPECT_EQ(seen, static_cast<std::size_t>(kCount));
}

TEST_P(PathsTest, LinkCyclesEndWithAnError) {
    link("b", "a");
    link("a", "b");
    EXPECT_EQ(read("a"), "!too_many_links");
    EXPECT_EQ(write("a", "x"), "!too_many_links");
}

TEST_P(PathsTest, AnUnnamedFileAppearsOnlyWhenPublished) {
    auto file = paths_.create_unnamed_file("logs/out.txt");
    if (!file) {
        GTEST_SKIP() << "no unnamed files on this file system: " << file.error().message;
    }
    ASSERT_TRUE(base::write_all(file->get(), "text"));
    EXPECT_EQ(paths_.list_directory(".", "", 10)->total, 0U);
    ASSERT_TRUE(paths_.publish(*file, "logs/out.txt"));
    EXPECT_EQ(get(user_data("logs/out.txt")), "text");
    EXPECT_EQ(paths_.publish(*file, "logs/out.txt").error().code, "already_exists");
}

// A swapper exchanges a real directory with a link to /etc while the file is read over and over.
TEST_P(PathsTest, C54SwappingADirectoryForALinkNeverLeaksAByte) {
    make_directory("a");
    make_directory("a/dir");
    put(user_data("a/dir/passwd"), "inside");
    link("/etc", "a/other");
    std::atomic<bool> stop = false;
    std::atomic<std::uint64_t> swaps = 0;
    const std::string one = user_data("a/dir");
    const std::string two = user_data("a/other");
    std::thread swapper([&] {
        while (!stop) {
            ::syscall(SYS_renameat2, AT_FDCWD, one.c_str(), AT_FDCWD, two.c_str(), RENAME_EXCHANGE);
            ++swaps;
        }
    });
    int inside = 0;
    int escapes = 0;
    for (int i = 0; i < 100'000; ++i) {
        const std::string got = read("a/dir/passwd");
        if (got == "inside") {
            ++inside;
        } else if (got == "!path_escape") {
            ++escapes;
        } else {
            ASSERT_EQ(got, "!not_found") << "a byte from outside, or an unexpected verdict";
        }
        if (i % 100 == 0) {
            const std::string made = write("a/dir/new", "x", true);
            ASSERT_TRUE(
                made == "new" || made == "replaced" || made == "!path_escape" ||
                made == "!not_found" || made == "!link_in_path"
            ) << made;
        }
    }
    stop = true;
    swapper.join();
    EXPECT_FALSE(exists("/etc/new"));
    EXPECT_GT(inside, 0);
    EXPECT_GT(escapes, 0) << "the race never happened in " << swaps << " swaps";
}

TEST_P(PathsTest, ASlashAtTheEndMeansADirectory) {
    put(user_data("f"), "text");
    make_directory("d");
    link("f/", "to_file");
    link("d/", "to_directory");
    link("new/", "to_new");
    put(user_data("d/f"), "inner");
    EXPECT_EQ(read("f/"), "!not_a_directory");
    EXPECT_EQ(read("f/."), "!not_a_directory");
    EXPECT_EQ(read("to_file"), "!not_a_directory");
    EXPECT_EQ(read("to_directory/f"), "inner");
    EXPECT_EQ(read("d/"), "!not_regular_file");
    EXPECT_TRUE(paths_.list_directory("d/", "", 10));
    EXPECT_EQ(write("new/", "x"), "!not_regular_file");
    EXPECT_EQ(write("to_new", "x"), "!not_found");
    EXPECT_FALSE(exists(user_data("new")));
}

TEST_P(PathsTest, C72NamesThatAreNoTextAreListedAndCanBeOpened) {
    const std::string names[] = {"\xff\xfe", "a\nb", "\xe2\x82", "é"};
    for (const std::string& name : names) {
        put(user_data(name), name);
    }
    const auto page = paths_.list_directory(".", "", 10);
    ASSERT_TRUE(page);
    ASSERT_EQ(page->entries.size(), std::size(names));
    for (const DirectoryEntry& entry : page->entries) {
        EXPECT_EQ(read(quote_path(entry.name)), entry.name);
    }
    EXPECT_EQ(write("$'made\\xff'", "x"), "new");
    EXPECT_TRUE(exists(user_data("made\xff")));
}

// Killed writers leave the lock; living ones hold it.
TEST_P(PathsTest, C78WhatAKilledWriterLeftIsRemovedByTheNextWrite) {
    const std::string dead = ".ars-00000000-0000-4000-8000-000000000000.tmp";
    const std::string alive = ".ars-11111111-0000-4000-8000-000000000000.tmp";
    put(user_data(dead), "half of");
    put(user_data(alive), "half of");
    put(user_data(".ars-mine.tmp"), "a user's own");
    const base::Fd writer(::open(user_data(alive).c_str(), O_WRONLY | O_CLOEXEC));
    ASSERT_EQ(::flock(writer.get(), LOCK_EX), 0);
    ASSERT_EQ(
        ::mkfifo(user_data(".ars-22222222-0000-4000-8000-000000000000.tmp").c_str(), 0600), 0
    );
    EXPECT_EQ(write("f", "text"), "new");
    EXPECT_FALSE(exists(user_data(dead)));
    EXPECT_TRUE(exists(user_data(alive)));
    EXPECT_TRUE(exists(user_data(".ars-mine.tmp")));
}

TEST_P(PathsTest, WhatMayNotBeReadIsSaidAndNotHidden) {
    as_gem([&] {
        make_directory("names_only");
        put(user_data("names_only/f"), "x");
        ::chmod(user_data("names_only").c_str(), 0400);
        make_directory("closed");
        ::chmod(user_data("closed").c_str(), 0);
        put(user_data("locked"), "x");
        ::chmod(user_data("locked").c_str(), 0);
        put(user_data("fixed"), "x");
        ::chmod(user_data("fixed").c_str(), 0400);
        const auto page = paths_.list_directory("names_only", "", 10);
        ASSERT_TRUE(page);
        ASSERT_EQ(page->entries.size(), 1U);
        EXPECT_FALSE(page->entries[0].accessible);
        EXPECT_EQ(read("names_only/f"), "!permission_denied");
        EXPECT_EQ(paths_.list_directory("closed", "", 10).error().code, "permission_denied");
        EXPECT_EQ(read("closed/f"), "!permission_denied");
        EXPECT_EQ(write("closed/f", "x"), "!permission_denied");
        EXPECT_EQ(read("locked"), "!permission_denied");
        EXPECT_EQ(write("fixed", "y", true), "!permission_denied");
        EXPECT_EQ(read("fixed"), "x");
        const auto report = walk_tree(*paths_.open_directory("."), {}, [](const WalkEntry&) {
            return WalkStep::go_on;
        });
        EXPECT_EQ(report.unreadable, 1U);
        ::chmod(user_data("closed").c_str(), 0700);
        ::chmod(user_data("names_only").c_str(), 0700);
    });
}

// A sandbox around the whole container may not know openat2.
TEST_P(PathsTest, C96ARefusedOpenat2ChangesNoVerdict) {
    make_directory("d");
    put(user_data("d/f"), "inside");
    link("/etc/passwd", "out");
    link("/home/gem/user-data/d", "in");
    for (const int error : {ENOSYS, EPERM}) {
        std::thread([&] {
            ASSERT_TRUE(refuse_openat2(static_cast<std::uint32_t>(error)));
            EXPECT_EQ(read("d/f"), "inside");
            EXPECT_EQ(read("in/f"), "inside");
            EXPECT_EQ(read("out"), "!path_escape");
            EXPECT_EQ(write("out", "x", true), "!path_escape");
            EXPECT_EQ(write("d/new", "x", true), error == ENOSYS ? "new" : "replaced");
        }).join();
    }
}

class TreeWalkTest : public WorkspaceTest {};

TEST_F(TreeWalkTest, VisitsInOrderWithoutFollowingLinks) {
    make_directory("b");
    put(user_data("b/2"), "");
    put(user_data("b/1"), "");
    put(user_data("a"), "");
    link("b", "link");
    const Paths paths(workspace_, "/home/gem/user-data");
    std::string seen;
    const auto report = walk_tree(*paths.open_directory("."), {}, [&](const WalkEntry& entry) {
        seen += entry.relative + " ";
        return WalkStep::go_on;
    });
    EXPECT_EQ(seen, "a b b/1 b/2 link ");
    EXPECT_TRUE(report.complete);
}

TEST_F(TreeWalkTest, StopsAtItsBoundsAndSaysSo) {
    for (int i = 0; i < 50; ++i) {
        put(user_data(std::to_string(i)), "");
    }
    make_directory("deep");
    make_directory("deep/er");
    put(user_data("deep/er/f"), "");
    const Paths paths(workspace_, "/home/gem/user-data");
    std::size_t seen = 0;
    const auto count = [&](const WalkEntry&) {
        ++seen;
        return WalkStep::go_on;
    };
    const auto start = paths.open_directory(".");
    EXPECT_FALSE(walk_tree(*start, {.entries = 10, .depth = 64}, count).complete);
    EXPECT_LE(seen, 10U);
    const auto shallow = walk_tree(*start, {.entries = 1000, .depth = 1}, count);
    EXPECT_FALSE(shallow.complete);
    EXPECT_NE(shallow.stopped_by.find("deeper"), std::string::npos);
    const base::Deadline past{std::chrono::steady_clock::time_point::min()};
    EXPECT_EQ(walk_tree(*start, {.deadline = past}, count).stopped_by, "the time limit");
}

}  // namespace
}  // namespace ars::fsmount
