// C51-C54, C70-C72, C102: which files the file tools open. The same workspace is used by `ars tool`
// and by a shell in a scope, and both must come to the same verdict.
#include "tests/cases/file_tool.hpp"

#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace ars::tests {
namespace {

using namespace std::chrono_literals;

class FileCases : public FileToolCases {
  protected:
    // The kernel's word on reading `path` in the scope: "=content" or the end of cat's complaint.
    std::string cat(const std::string& path) {
        const json::object outcome = run("cat -- " + path);
        if (number(outcome, "exit_code") == 0) {
            return "=" + text(outcome, "stdout");
        }
        const std::string complaint = text(outcome, "stderr");
        return complaint.substr(std::min(complaint.rfind(": ") + 2, complaint.size()));
    }

    // Of the largest process this test has waited for.
    static long peak_kib() {
        rusage usage{};
        ::getrusage(RUSAGE_CHILDREN, &usage);
        return usage.ru_maxrss;
    }
};

TEST_P(FileCases, C51_LinksOutOfTheRootAreEscapesAndAreShownAsLinks) {
    ASSERT_TRUE(exited(run("ln -s /etc/passwd l; ln -s / d; mkdir in; echo x >in/f; ln -s in i"), 0)
    );
    EXPECT_TRUE(refuses(read("l"), "path_escape"));
    EXPECT_TRUE(refuses(read("d/etc/passwd"), "path_escape"));
    EXPECT_TRUE(refuses(tool("ls", {{"path", "d/etc"}}), "path_escape"));
    EXPECT_TRUE(refuses(tool("grep", {{"pattern", "root"}, {"path", "d/etc"}}), "path_escape"));
    EXPECT_TRUE(refuses(tool("glob", {{"pattern", "*"}, {"path", "d/etc"}}), "path_escape"));
    EXPECT_TRUE(refuses(write("l", "x", true), "path_escape"));
    EXPECT_TRUE(refuses(edit("l", "root", "toor"), "path_escape"));
    const Answer listing = tool("ls", {});
    EXPECT_EQ(listing.code, 0);
    EXPECT_NE(listing.text.find("l -> /etc/passwd (link)\n"), std::string::npos) << listing.text;
    EXPECT_NE(listing.text.find("d -> / (link)\n"), std::string::npos) << listing.text;
    EXPECT_EQ(read("i/f").text, "     1\tx\n") << "a link inside works";
    EXPECT_EQ(cat("i/f"), "=x\n");
    EXPECT_EQ(tool("glob", {{"pattern", "**/passwd"}}).text.find("/etc"), std::string::npos);
}

TEST_P(FileCases, C52_WritingThroughADanglingLinkCreatesNothingOutside) {
    const TempDir outside;
    ASSERT_EQ(::chmod(outside.path().c_str(), 0777), 0);
    const std::string target = outside.path() + "/new.txt";
    std::filesystem::create_symlink(target, path("w"));
    std::filesystem::create_symlink("../../../../../.." + target, path("up"));
    for (const char* const name : {"w", "up"}) {
        EXPECT_TRUE(refuses(write(name, "x"), "path_escape"));
        EXPECT_TRUE(refuses(write(name, "x", true), "path_escape"));
    }
    EXPECT_FALSE(std::filesystem::exists(target));
    EXPECT_FALSE(exited(run("echo x >w"), 0)) << "nor does a shell reach it";
    EXPECT_FALSE(std::filesystem::exists(target));
}

TEST_P(FileCases, C53_SlashlessLinkGetsTheSameRefusal) {
    ASSERT_TRUE(exited(run("ln -s /etc/passwd link.txt"), 0));
    const Answer relative = read("link.txt");
    EXPECT_TRUE(refuses(relative, "path_escape"));
    EXPECT_EQ(relative.text, read(workspace().guest("link.txt")).text);
}

// 100,000 reads of one process, with either resolver, are in paths_test: this is the whole binary.
TEST_P(FileCases, C54_DirectorySwappedForALinkNeverLeaksAByte) {
    workspace_with({"swap_names"});
    ASSERT_TRUE(exited(run("mkdir -p a/dir; echo inside >a/dir/passwd; ln -s /etc a/other"), 0));
    ASSERT_TRUE(exited(run("./swap_names a/dir a/other >/dev/null 2>&1 &"), 0));
    int inside = 0;
    int refused = 0;
    for (int i = 0; i < 400 && (i < 60 || inside == 0 || refused == 0); ++i) {
        const Answer seen = read("a/dir/passwd");
        if (seen.code == 0) {
            ASSERT_EQ(seen.text, "     1\tinside\n");
            ++inside;
        } else {
            ASSERT_TRUE(seen.text.starts_with("path_escape") || seen.text.starts_with("not_found"))
                << seen.text;
            ++refused;
        }
    }
    EXPECT_GT(inside, 0);
    EXPECT_GT(refused, 0);
}

TEST_P(FileCases, C70_WhatIsNoRegularFileIsRefusedAtOnce) {
    ASSERT_TRUE(exited(run("mkfifo f; mkdir d; mkfifo d/inner; echo needle >d/text"), 0));
    const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path("sock").copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    std::filesystem::create_symlink("/dev/zero", path("zero"));
    std::vector<std::string> names = {"f", "d", "sock"};
    if (::geteuid() == 0 && ::mknod(path("device").c_str(), S_IFCHR | 0666, 0x105) == 0) {
        names.emplace_back("device");
    }
    for (const std::string& name : names) {
        EXPECT_TRUE(refuses(read(name), "not_regular_file")) << name;
        EXPECT_TRUE(refuses(write(name, "x", true), "not_regular_file")) << name;
        EXPECT_TRUE(refuses(edit(name, "a", "b"), "not_regular_file")) << name;
    }
    EXPECT_TRUE(refuses(read("zero"), "path_escape"));
    EXPECT_TRUE(refuses(tool("grep", {{"pattern", "x"}, {"path", "f"}}), "not_regular_file"));
    const Answer searched = tool("grep", {{"pattern", "needle"}, {"path", "d"}});
    EXPECT_NE(searched.text.find("d/text\n"), std::string::npos) << searched.text;
    EXPECT_NE(searched.text.find("not_regular_file: inner"), std::string::npos) << searched.text;
    ::close(socket);
    ::unlink(path("device").c_str());
}

TEST_P(FileCases, C71_RangesOfAHugeSparseFileCostNoMemory) {
    const std::string big = path("big");
    std::ofstream(big) << "first\nsecond\n" << std::string(20'000, 'x') << "\nlast\n";
    give_to_gem(big);
    ASSERT_EQ(::truncate(big.c_str(), 200LL << 30), 0);
    const int fd = ::open(big.c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_EQ(::pwrite(fd, "far", 3, 199LL << 30), 3);
    ::close(fd);
    const Answer head = tool("read_file", {{"file_path", "big"}, {"offset", 0}, {"limit", 2}});
    EXPECT_EQ(head.code, 0);
    EXPECT_TRUE(head.text.starts_with("     1\tfirst\n     2\tsecond\n")) << head.text;
    const Answer range = tool(
        "read_file", {{"file_path", "big"}, {"base64", true}, {"offset", 199LL << 30}, {"limit", 3}}
    );
    EXPECT_NE(range.text.find("\nZmFy\n"), std::string::npos) << range.text;
    EXPECT_NE(range.text.find("of 214748364800 bytes, sparse: "), std::string::npos) << range.text;
    ASSERT_EQ(::truncate(big.c_str(), 0), 0);
    ASSERT_EQ(::truncate(big.c_str(), 200LL << 30), 0);
    const Answer zeros = tool("read_file", {{"file_path", "big"}, {"offset", 0}, {"limit", 10}});
    EXPECT_TRUE(refuses(zeros, "binary_file"));
    EXPECT_NE(zeros.text.find("214748364800 bytes, sparse: 0 stored"), std::string::npos)
        << zeros.text;
    EXPECT_LT(peak_kib(), 300 * 1024);
}

TEST_P(FileCases, C72_HundredThousandNamesAreListedInPages) {
    // Names are what counts: links to few files are made and removed faster than files.
    std::filesystem::create_directory(path("many"));
    give_to_gem(path("many"));
    for (int i = 1; i <= 100'000; ++i) {
        const std::string name = "many/" + std::to_string(i);
        if (i % 50'000 == 1) {
            put("file" + std::to_string(i), "");
        }
        const std::string file = path("file" + std::to_string((i - 1) / 50'000 * 50'000 + 1));
        ASSERT_EQ(::link(file.c_str(), path(name).c_str()), 0);
    }
    EXPECT_TRUE(holds(run("ls -U many | wc -l"), "stdout", "100000"));
    const std::string many = workspace().guest("many");
    const Answer first = tool("ls", {{"path", "many"}, {"limit", 2000}});
    ASSERT_EQ(first.code, 0);
    EXPECT_TRUE(first.text.starts_with(many + ": 100000 entries\n1  0 bytes"));
    const std::string last = "11797";  // the 2000th in the order of bytes
    EXPECT_TRUE(first.text.ends_with("[98000 more: continue with after=\"" + last + "\"]\n"))
        << first.text.substr(first.text.size() - 100);
    const Answer next = tool("ls", {{"path", "many"}, {"limit", 2000}, {"after", last}});
    EXPECT_NE(next.text.find("\n11798  0 bytes"), std::string::npos);
    EXPECT_NE(next.text.find("[96000 more"), std::string::npos);
    EXPECT_EQ(tool("ls", {{"path", "many"}, {"after", "99999"}}).text, many + ": 100000 entries\n");
    EXPECT_LT(peak_kib(), 300 * 1024);
}

TEST_P(FileCases, C72_NamesThatAreNoTextCanBeGivenBack) {
    ASSERT_TRUE(exited(
        run("printf one >$'a\\xff'; printf two >$'b\\nc'; mkdir $'d\\xfe'; printf three "
            ">$'d\\xfe/f'"),
        0
    ));
    const Answer listing = tool("ls", {});
    for (const auto& [shown, content] : std::map<std::string, std::string>{
             {"$'a\\xff'", "one"},
             {"$'b\\x0ac'", "two"},
             {"$'" + workspace().guest("d\\xfe/f'"), "three"}
         }) {
        EXPECT_EQ(read(shown).text, "     1\t" + content + "\n") << shown;
        EXPECT_EQ(cat(shown), "=" + content) << "bash reads the same notation";
        const Answer found = tool("glob", {{"pattern", "**"}});
        EXPECT_NE((listing.text + found.text).find(shown), std::string::npos) << found.text;
    }
    const Answer page = tool("ls", {{"limit", 1}});
    EXPECT_NE(page.text.find("after=\"$'a\\xff'\""), std::string::npos) << page.text;
    EXPECT_NE(
        tool("ls", {{"limit", 1}, {"after", "$'a\\xff'"}}).text.find("\n$'b\\x0ac'"),
        std::string::npos
    );
}

// Where both can see the target they agree on it; what lies outside the two roots is the image's
// for a shell, if the image has it, and nothing for the file tools. Links between the roots, with
// skills behind them, are compared in same_verdict_test.
TEST_P(FileCases, C102_ShellAndFileToolsAgreeOnLinks) {
    ASSERT_TRUE(exited(
        run("mkdir -p real/deep; echo x >real/f; ln -s " + workspace().guest("real") +
            " absolute; "
            "ln -s ../real/f real/around; ln -s /home/gem/skills/x s; ln -s /srv/repo r; "
            "ln -s loop loop; ln -s f/ real/slash; ln -s nothing dangling"),
        0
    ));
    struct Row {
        const char* path;
        const char* shell;
        const char* tool;
    };
    for (const Row& row : std::initializer_list<Row>{
             {"absolute/f", "=x\n", ""},
             {"real/around", "=x\n", ""},
             {"s/f", "No such file or directory\n", "not_found"},
             {"r/f", "No such file or directory\n", "path_escape"},
             {"loop", "Too many levels of symbolic links\n", "too_many_links"},
             {"real/slash", "Not a directory\n", "not_a_directory"},
             {"real/f/x", "Not a directory\n", "not_a_directory"},
             {"dangling", "No such file or directory\n", "not_found"},
             {"absolute/deep", "Is a directory\n", "not_regular_file"},
         }) {
        EXPECT_EQ(cat(row.path), row.shell) << row.path;
        if (*row.tool == '\0') {
            EXPECT_EQ(read(row.path).text, "     1\tx\n") << row.path;
        } else {
            EXPECT_TRUE(refuses(read(row.path), row.tool)) << row.path;
        }
    }
    EXPECT_FALSE(exited(run("echo x >/home/gem/skills/new"), 0));
    EXPECT_TRUE(refuses(write("/home/gem/skills/new", "x"), "read_only"));
}

ARS_INSTANTIATE_CASES(FileCases);

}  // namespace
}  // namespace ars::tests
