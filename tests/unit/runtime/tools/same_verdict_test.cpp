// A shell in the scope and the file tools look at the same trees of links, in both roots, and must
// agree: what a tool reads a shell reads, what a tool refuses for the kernel's reasons the kernel
// refuses, and a path_escape really ends outside.
#include "fsmount/mount_plan.hpp"
#include "tests/unit/runtime/tools/tools_fixture.hpp"

#include <map>
#include <random>
#include <sstream>

#include <unistd.h>

namespace ars::tools {
namespace {

class SameVerdict : public ToolsTest {
  protected:
    void SetUp() override {
        auto made = sandbox::make_sandbox(io_.get_executor(), {}, log_);
        ASSERT_TRUE(made) << made.error().message;
        sandbox_ = std::move(*made);
        if (::geteuid() == 0) {
            ASSERT_EQ(::chown(work("").c_str(), 1000, 1000), 0);
        }
        use(*sandbox_, [this]() -> base::Result<sandbox::ScopeSpec> {
            auto plan = fsmount::make_mount_plan(*workspace_, {});
            if (!plan) {
                return std::unexpected(plan.error());
            }
            return sandbox::ScopeSpec{{}, std::move(*plan), "ars"};
        });
        if (const auto scope = run(environment_->scope()); !scope) {
            GTEST_SKIP() << "no namespaces tier on this host: " << scope.error().message;
        }
    }
    void TearDown() override {
        if (sandbox_) {
            run(close());
        }
    }
    base::Task<bool> close() {
        co_await sandbox_->close();
        co_return true;
    }

    std::string one_of(std::initializer_list<const char*> values) {
        return values.begin()[random_() % values.size()];
    }
    static void empty(const std::string& directory) {
        const auto remove = [](const char* path, const struct stat*, int, FTW* at) {
            return at->level == 0 ? 0 : ::remove(path);
        };
        ::nftw(directory.c_str(), remove, 32, FTW_DEPTH | FTW_PHYS);
    }

    // Directories, files and links with one-letter names in both roots.
    void make_tree() {
        std::vector<std::string> directories = {user_data("work"), skills("")};
        for (int i = 0; i < 24; ++i) {
            const std::string path =
                directories[random_() % directories.size()] + "/" + one_of({"a", "b", "c", "d"});
            switch (random_() % 5) {
                case 0:
                case 1:
                    if (::mkdir(path.c_str(), 0755) == 0) {
                        directories.push_back(path);
                    }
                    break;
                case 2:
                    if (!exists(path)) {
                        put(path, "content " + std::to_string(i));
                        ::chmod(path.c_str(), 0644);
                    }
                    break;
                default:
                    (void)::symlink(random_target().c_str(), path.c_str());
            }
        }
    }
    std::string random_target() {
        std::string out = one_of(
            {"", "", "", "/home/gem/user-data/work/", "/home/gem/skills/", "../", "/etc/", "./"}
        );
        out += one_of({"a", "b", "c", "d", "passwd", ".."});
        out += one_of({"", "", "/a", "/../b", "/", "/.", "/../../skills/a"});
        return out;
    }
    std::string random_path() {
        std::string out = one_of({"/home/gem/user-data/work", "/home/gem/skills"});
        for (std::size_t parts = random_() % 3 + 1; parts > 0; --parts) {
            out += "/" + one_of({"a", "b", "c", "d"});
        }
        return out + one_of({"", "", "", "", "/"});
    }

    struct Seen {
        bool read = false;
        std::string said;   // content, or the kernel's reason
        std::string where;  // with all links followed
    };
    // Only builtins in the loop: a process for each path would take long on a busy machine.
    std::vector<Seen> shell(const std::vector<std::string>& paths) {
        std::string script =
            "exec 2>>/tmp/err\nwhile IFS= read -r p; do : >/tmp/err; c=; "
            "{ IFS= read -r -d '' c; } <\"$p\"; IFS= read -r -d '' e </tmp/err; e=${e%$'\\n'}; "
            "if [ -z \"$e\" ]; then echo \"=$c\"; else echo \"!${e##*: }\"; fi; "
            "all+=(\"$p\"); done <<'EOF'\n";
        for (const std::string& path : paths) {
            script += path + "\n";
        }
        script += "EOF\nrealpath -m -- \"${all[@]}\" 2>&1\n";
        const auto result =
            call("execute", boost::json::object{{"command", script}, {"timeout", 100}});
        std::istringstream lines(result.text);
        std::vector<Seen> out(paths.size());
        for (Seen& one : out) {
            std::getline(lines, one.said);
            one.read = one.said.starts_with('=');
            one.said.erase(0, 1);
        }
        for (Seen& one : out) {
            EXPECT_TRUE(std::getline(lines, one.where)) << result.text;
        }
        return out;
    }

    std::mt19937 random_{7'102};
    base::Log log_{STDERR_FILENO, base::LogLevel::off};
    std::unique_ptr<sandbox::Sandbox> sandbox_;
};

TEST_F(SameVerdict, C102RandomTreesOfLinksLookTheSameToAShellAndToTheTools) {
    const std::map<std::string, std::string> reasons = {
        {"not_found", "No such file or directory"},
        {"not_a_directory", "Not a directory"},
        {"not_regular_file", "Is a directory"},
        {"too_many_links", "Too many levels of symbolic links"},
    };
    std::map<std::string, int> verdicts;
    for (int round = 0; round < 8; ++round) {
        make_tree();
        std::vector<std::string> paths;
        for (int i = 0; i < 40; ++i) {
            paths.push_back(random_path());
        }
        const std::vector<Seen> seen = shell(paths);
        for (std::size_t i = 0; i < seen.size(); ++i) {
            const auto file = environment_->paths().open_read(paths[i]);
            const std::string code = file ? "read" : file.error().code;
            ++verdicts[code];
            SCOPED_TRACE(paths[i] + ": tools say " + code + ", a shell says " + seen[i].said);
            if (file) {
                EXPECT_TRUE(seen[i].read);
                EXPECT_EQ(base::read_to_end(file->fd.get(), 100).value_or("?"), seen[i].said);
            } else if (code == "path_escape") {
                EXPECT_FALSE(seen[i].where.starts_with("/home/gem/user-data")) << seen[i].where;
                EXPECT_FALSE(seen[i].where.starts_with("/home/gem/skills")) << seen[i].where;
            } else {
                ASSERT_TRUE(reasons.contains(code));
                EXPECT_EQ(seen[i].said, reasons.at(code));
            }
        }
        empty(work(""));
        empty(skills(""));
    }
    for (const char* const code :
         {"read", "path_escape", "not_found", "not_a_directory", "not_regular_file"}) {
        EXPECT_GT(verdicts[code], 0) << code << " never happened";
    }
}

TEST_F(SameVerdict, C102ALinkFromOneRootIntoTheOtherHasTheRightsOfItsTarget) {
    ASSERT_EQ(::mkdir(skills("x").c_str(), 0755), 0);
    put(skills("x/SKILL.md"), "skill");
    ::chmod(skills("x/SKILL.md").c_str(), 0644);
    link("/home/gem/skills/x", "work/s");
    link("/home/gem/skills/x/new", "work/n");
    const auto sh = [&](const std::string& command) {
        return call("execute", boost::json::object{{"command", command}, {"timeout", 30}}).text;
    };
    EXPECT_EQ(call("read_file", R"({"file_path": "s/SKILL.md"})").text, "     1\tskill\n");
    EXPECT_TRUE(sh("cat s/SKILL.md").starts_with("skill"));
    for (const char* const name : {"s/SKILL.md", "s/new", "n"}) {
        const auto refused = call(
            "write_file",
            boost::json::object{{"file_path", name}, {"content", "x"}, {"overwrite", true}}
        );
        EXPECT_TRUE(refused.text.starts_with("read_only: ")) << refused.text;
        EXPECT_NE(
            sh(std::string("echo x >") + name).find("Read-only file system"), std::string::npos
        );
    }
    EXPECT_EQ(get(skills("x/SKILL.md")), "skill");
}

}  // namespace
}  // namespace ars::tools
