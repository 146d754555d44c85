// C102 on trees of links nobody thought of: a shell in the scope and the file tools read the same
// paths and must agree. What a tool reads the shell reads, what a tool refuses for the kernel's
// reasons the kernel refuses, and a path_escape really ends outside.
#include "tests/cases/file_tool.hpp"

#include <cstdio>
#include <map>
#include <random>
#include <sstream>

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ars::tests {
namespace {

constexpr unsigned kSeed = 7102;
constexpr int kTrees = 6;
constexpr int kEntries = 24;  // tried in each tree
constexpr int kPaths = 14;    // read in each tree

class LinkTrees : public FileToolCases {
  protected:
    std::string one_of(std::initializer_list<const char*> values) {
        return values.begin()[random_() % values.size()];
    }
    std::string name() { return one_of({"a", "b", "c", "d"}); }

    // Directories, files and links with one-letter names below `root`.
    void make_tree(const std::string& root) {
        std::vector<std::string> directories{root};
        ASSERT_EQ(::mkdir(root.c_str(), 0755), 0);
        give_to_gem(root);
        for (int i = 0; i < kEntries; ++i) {
            const std::string path = directories[random_() % directories.size()] + "/" + name();
            struct stat there{};
            if (::lstat(path.c_str(), &there) == 0) {
                continue;
            }
            switch (random_() % 5) {
                case 0:
                case 1:
                    ASSERT_EQ(::mkdir(path.c_str(), 0755), 0);
                    directories.push_back(path);
                    give_to_gem(path);
                    break;
                case 2:
                    put(path.substr(workspace().path().size() + 1), "content " + std::to_string(i));
                    break;
                default:
                    ASSERT_EQ(::symlink(random_target().c_str(), path.c_str()), 0);
            }
        }
    }
    std::string random_target() {
        std::string out = one_of(
            {"", "", "", "/home/gem/user-data/tree/", "/home/gem/skills/", "../", "/etc/", "./"}
        );
        out += one_of({"a", "b", "c", "d", "passwd", ".."});
        return out + one_of({"", "", "/a", "/../b", "/", "/.", "/../../skills/a"});
    }
    std::string random_path() {
        std::string out = workspace().guest("tree");
        for (std::size_t parts = random_() % 3 + 1; parts > 0; --parts) {
            out += "/" + name();
        }
        return out + one_of({"", "", "", "", "/"});
    }

    struct Seen {
        bool read = false;
        std::string said;   // content, or the kernel's reason
        std::string where;  // with all links followed
    };
    // All of them in one command of the session.
    std::vector<Seen> shell(const std::vector<std::string>& paths) {
        std::string script = "for p in";
        for (const std::string& path : paths) {
            script += " " + path;
        }
        script +=
            "; do if c=$(cat -- \"$p\" 2>$TMPDIR/err); then echo \"=$c\"; else e=$(<$TMPDIR/err); "
            "echo \"!${e##*: }\"; fi; realpath -m -- \"$p\" 2>/dev/null || echo none; done";
        const json::object outcome = run(script);
        std::istringstream lines(text(outcome, "stdout"));
        std::vector<Seen> out(paths.size());
        for (Seen& one : out) {
            EXPECT_TRUE(std::getline(lines, one.said) && std::getline(lines, one.where))
                << json::serialize(outcome);
            one.read = one.said.starts_with('=');
            one.said.erase(0, 1);
        }
        return out;
    }

    static bool is_inside(const std::string& path) {
        return path.starts_with("/home/gem/user-data") || path.starts_with("/home/gem/skills");
    }
    static void remove_tree(const std::string& root) {
        const auto remove = [](const char* path, const struct stat*, int, FTW*) {
            return ::remove(path);
        };
        ::nftw(root.c_str(), remove, 16, FTW_DEPTH | FTW_PHYS);
    }

    std::mt19937 random_{kSeed};
};

TEST_P(LinkTrees, C102_RandomTreesOfLinksLookTheSameToAShellAndToTheTools) {
    const std::map<std::string, std::string> reasons = {
        {"not_found", "No such file or directory"},
        {"not_a_directory", "Not a directory"},
        {"not_regular_file", "Is a directory"},
        {"too_many_links", "Too many levels of symbolic links"},
    };
    std::printf("seed %u\n", kSeed);
    std::map<std::string, int> verdicts;
    for (int round = 0; round < kTrees; ++round) {
        make_tree(path("tree"));
        std::vector<std::string> paths;
        for (int i = 0; i < kPaths; ++i) {
            paths.push_back(random_path());
        }
        const std::vector<Seen> seen = shell(paths);
        for (std::size_t i = 0; i < seen.size(); ++i) {
            const Answer answer = read(paths[i]);
            const std::string code =
                answer.code == 0 ? "read" : answer.text.substr(0, answer.text.find(':'));
            ++verdicts[code];
            SCOPED_TRACE(
                "tree " + std::to_string(round) + ", " + paths[i] + ": tools say " + answer.text +
                ", a shell says " + seen[i].said + ", at " + seen[i].where
            );
            if (answer.code == 0) {
                EXPECT_TRUE(seen[i].read);
                EXPECT_EQ(answer.text, "     1\t" + seen[i].said + "\n");
            } else if (code == "path_escape") {
                EXPECT_FALSE(is_inside(seen[i].where));
            } else {
                ASSERT_TRUE(reasons.contains(code));
                EXPECT_EQ(seen[i].said, reasons.at(code));
            }
        }
        remove_tree(path("tree"));
    }
    for (const char* const code : {"read", "path_escape", "not_found", "not_regular_file"}) {
        EXPECT_GT(verdicts[code], 0) << code << " never happened";
    }
}

ARS_INSTANTIATE_CASES(LinkTrees);

}  // namespace
}  // namespace ars::tests
