// C49, C56-C68: what a tool can reach of the machine, of the server and of other sandboxes.
#include "tests/cases/fixture.hpp"

#include <boost/json/serialize.hpp>

#include <array>
#include <filesystem>
#include <set>
#include <sstream>
#include <thread>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace ars::tests {
namespace {

using namespace std::chrono_literals;

class BoundaryCases : public Cases {};

// A listening unix socket outside; `abstract` has no file.
class UnixListener {
  public:
    UnixListener(const std::string& name, bool abstract)
        : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        name.copy(address.sun_path + (abstract ? 1 : 0), sizeof address.sun_path - 2);
        const auto length =
            static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + 1);
        if (::bind(fd_, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
            ::listen(fd_, 8) != 0) {
            throw std::runtime_error("can't listen on " + name);
        }
        if (!abstract) {
            ::chmod(name.c_str(), 0777);
        }
    }
    UnixListener(const UnixListener&) = delete;
    UnixListener& operator=(const UnixListener&) = delete;
    ~UnixListener() { ::close(fd_); }

  private:
    int fd_;
};

TEST_P(BoundaryCases, C49_ToolCannotSignalWhatIsOutsideItsScope) {
    const std::string mark = marker();
    const Workspace other_workspace(landlock());
    Session other(GetParam(), other_workspace.options());
    // The other session's tool writes its pid as the machine sees it where there is no pid
    // namespace.
    EXPECT_TRUE(exited(other.run("sleep " + mark + " & echo $!"), 0));
    std::string victims = std::to_string(session().pid()) + " " + std::to_string(other.pid());
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        if (read_text(entry.path() / "cmdline").find(mark) != std::string::npos) {
            victims += " " + entry.path().filename().string();
        }
    }
    const json::object done = run(
        "for p in " + victims +
        "; do kill -STOP $p && echo stopped $p; kill -9 $p && echo killed $p; done; kill -9 1; true"
    );
    EXPECT_EQ(text(done, "stdout"), "") << json::serialize(done);
    EXPECT_EQ(text(run("echo here"), "stdout"), "here\n");
    EXPECT_EQ(text(other.run("echo there"), "stdout"), "there\n");
    EXPECT_EQ(processes_with(mark), 1);
}

TEST_P(BoundaryCases, C56_NoEnvironmentOfTheServerIsReadable) {
    options_.environment = {{"ARS_CASE_SECRET", "hunter2"}};
    const json::object done = run(
        "cat /proc/1/environ >/dev/null && echo init; "
        "for p in /proc/[0-9]*; do tr '\\0' '\\n' <$p/environ; done 2>/dev/null | grep -c hunter2"
    );
    EXPECT_EQ(text(done, "stdout"), "0\n") << json::serialize(done);
}

TEST_P(BoundaryCases, C57_EveryAliasOfAHiddenPathHasTheSameVerdict) {
    const TempDir hidden;
    const std::string secret = hidden.write("secret", "hunter2");
    const json::object done =
        run("for p in " + secret + " /proc/self/root" + secret + " /proc/$$/root" + secret +
            " /proc/1/root" + secret + " /proc/1/cwd" + secret + " /proc/self/cwd/../../../.." +
            secret + " //." + secret + "; do cat $p && echo OPEN $p; done; ln -s " + secret +
            " l; cat l; true");
    EXPECT_EQ(text(done, "stdout"), "") << json::serialize(done);
}

TEST_P(BoundaryCases, C59_NothingBelowAWritableDirectoryIsABoundary) {
    // The only protected paths are mounts (or, without mounts, rules) of their own. A repository in
    // the workspace is the agent's, hooks included, and nothing pretends otherwise.
    const json::object done =
        run("mkdir -p .git/hooks && mv .git .git2 && mkdir -p .git/hooks && echo x "
            ">.git/hooks/pre-commit && cat .git/hooks/*");
    EXPECT_TRUE(exited(done, 0));
    EXPECT_EQ(text(done, "stdout"), "x\n");
}

TEST_P(BoundaryCases, C60_AbsentProtectedPathCannotBeCreated) {
    const json::object done =
        run("for p in /home/gem/skills/x /home/skills /etc/ars /var/lib/ars-x /run/x /root/x "
            "/usr/x /x; do "
            "mkdir $p && echo made $p; touch $p && echo made $p; done; mv /home/gem/skills "
            "/home/gem/s2 && echo moved; true");
    EXPECT_EQ(text(done, "stdout"), "") << json::serialize(done);
}

TEST_P(BoundaryCases, C61_NothingIsLeftInTheWorkspaceAlsoAfterACrash) {
    const std::string list = "ls -A . ~ | grep -v '^$'";
    const std::string before = text(run(list), "stdout");
    EXPECT_TRUE(exited(run("true"), 0));
    EXPECT_EQ(text(run(list), "stdout"), before);
    EXPECT_EQ(session().run("sleep 20 & true").at("status"), "exited");
    session().kill_binary();
    std::set<std::string> left;
    for (const auto& entry : std::filesystem::directory_iterator(workspace().path())) {
        left.insert(entry.path().filename());
    }
    EXPECT_EQ(left, std::set<std::string>{});
}

TEST_P(BoundaryCases, C62_TwentyThousandNeighboursDoNotBreakAStart) {
    ARS_NEEDS_ROOT();
    // data_dir is hidden. With mounts that costs one, whatever stands beside it. Landlock allows
    // only, so each neighbour is a rule: beyond the bound the start is refused with what to do.
    const TempDir crowd("/var/lib");
    crowd.write(
        "appliance.yaml",
        "data_dir: " + crowd.path() +
            "/neighbour-7\nmodels:\n  default: \"main:x\"\n  providers:\n    main: {type: "
            "openai, base_url: \"http://127.0.0.1:9/v1\"}\n"
    );
    options_.flags = {"--config", crowd.path() + "/appliance.yaml"};
    for (int i = 0; i < 20000; ++i) {
        std::filesystem::create_directory(crowd.path() + "/neighbour-" + std::to_string(i));
    }
    const json::object done = run("echo hi");
    if (landlock()) {
        EXPECT_TRUE(has_status(done, "setup_failed"));
        EXPECT_TRUE(holds(done, "detail", "into a directory of their own"))
            << json::serialize(done);
    } else {
        EXPECT_EQ(text(done, "stdout"), "hi\n") << json::serialize(done);
    }
}

TEST_P(BoundaryCases, C62_TwentyThousandProtectedFilesAreHiddenAndTheCommandRuns) {
    ARS_NEEDS_ROOT();
    if (GetParam().io == "io_uring") {
        GTEST_SKIP() << "what is hidden has nothing to do with the backend";
    }
    const TempDir crowd("/var/lib");
    std::string config =
        "models:\n  default: \"main:x\"\n  providers:\n    main: {type: openai, base_url: "
        "\"http://127.0.0.1:9/v1\"}\nusers: [{uid: a, role: user}]\napi_keys:\n";
    for (int i = 0; i < 20000; ++i) {
        const std::string name = "keys/" + std::to_string(i);
        crowd.write(name, "a-secret-of-this-test-" + std::to_string(i));
        config += "  - {name: n" + std::to_string(i) + ", uid: a, key_file: " + crowd.path() + "/" +
                  name + "}\n";
    }
    options_.flags = {"--config", crowd.write("appliance.yaml", config)};
    const json::object done =
        run("echo hi; cd " + crowd.path() + "/keys; cat 0 77 19999 2>/dev/null | grep -c secret");
    EXPECT_EQ(text(done, "stdout"), "hi\n0\n") << json::serialize(done);
    EXPECT_EQ(text(run("echo again"), "stdout"), "again\n");
}

TEST_P(BoundaryCases, C63_GitWorksWithAWorktreeElsewhereInTheWorkspace) {
    ARS_NEEDS("git");
    const json::object done =
        run("export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a "
            "GIT_COMMITTER_EMAIL=a@b; mkdir r && cd r && "
            "git init -q && echo x >f && git add -A && git commit -qm x && git worktree add -q "
            "../w && cd ../w && "
            "git commit -q --allow-empty -m y && git log --oneline | wc -l");
    EXPECT_EQ(text(done, "stdout"), "2\n") << json::serialize(done);
}

TEST_P(BoundaryCases, C64_RepositoryOfAnotherOwnerWorksAndTheUsersSettingsStay) {
    ARS_NEEDS("git");
    ARS_NEEDS_ROOT();
    const TempDir foreign;
    const std::string script =
        "git -C " + foreign.path() + " init -q && chown -R 1001:1001 " + foreign.path();
    ASSERT_EQ(ars::tests::run({"sh", "-c", script}).exit_code, 0);
    options_.workspace = foreign.path();
    if (landlock()) {  // without mounts there is no other workspace: refused with the remedy
        std::vector<std::string> argv = exec_argv(GetParam(), options_);
        argv.insert(argv.end(), {"--", "true"});
        const Finished refused = ars::tests::run(argv);
        EXPECT_EQ(refused.exit_code, 125);
        EXPECT_NE(refused.err.find("--workspace"), std::string::npos) << refused.err;
        return;
    }
    if (!may_map_owners()) {
        GTEST_SKIP() << "no id-mapped mounts here";
    }
    const json::object done = run("git status --short && touch new && git config --global --list");
    EXPECT_EQ(text(done, "stderr").find("dubious"), std::string::npos) << json::serialize(done);
    struct stat made{};
    EXPECT_EQ(::stat((foreign.path() + "/new").c_str(), &made), 0);
    EXPECT_EQ(made.st_uid, 1001U);
}

TEST_P(BoundaryCases, C65_TemporaryDirectoriesCanBeMade) {
    const json::object done = run("d=$(mktemp -d) && test -d $d && stat -c %a $d");
    EXPECT_EQ(text(done, "stdout"), "700\n") << json::serialize(done);
    ARS_NEEDS("python3");
    const json::object made =
        python("import os,tempfile\nprint(os.path.isdir(tempfile.mkdtemp()))");
    EXPECT_EQ(text(made, "stdout"), "True\n") << json::serialize(made);
}

TEST_P(BoundaryCases, C67_SharedMemoryOfAnotherScopeIsNotSeen) {
    const std::string name = "ars-" + marker();
    const Workspace second(landlock());
    Session other(GetParam(), second.options());
    const json::object wrote = other.run("echo x >/dev/shm/" + name);
    const json::object done = run("ls /dev/shm");
    if (landlock()) {  // one uid, one /dev/shm: what the tier's own words do not promise
        const Finished words = ars::tests::run({ars_binary(), "doctor", "--tier", "landlock"});
        EXPECT_NE(words.out.find("/dev/shm is shared"), std::string::npos) << words.out;
    } else {
        EXPECT_TRUE(exited(wrote, 0));
        EXPECT_EQ(text(done, "stdout"), "") << json::serialize(done);
    }
    other.run("rm -f /dev/shm/" + name);
}

TEST_P(BoundaryCases, C68_UnixSocketsOutsideAreNotReachable) {
    ARS_NEEDS("python3");
    const std::string name = "ars-case-" + marker();
    const TempDir hidden;
    ::chmod(hidden.path().c_str(), 0755);
    const UnixListener abstract(name, true);
    const UnixListener with_file(hidden.path() + "/ctl", false);
    // Connecting needs the abstract name or the path; each attempt says how it ended.
    const json::object done = python(
        "import socket\n"
        "for a in ['\\0" +
        name + "', '" + hidden.path() +
        "/ctl']:\n"
        "    s = socket.socket(socket.AF_UNIX)\n"
        "    try: s.connect(a); print('open', repr(a))\n"
        "    except OSError as e: print('refused')\n"
    );
    // Landlock promises nothing about sockets with a path: that needs mounts.
    const std::string expected =
        landlock() ? "refused\nopen '" + hidden.path() + "/ctl'\n" : "refused\nrefused\n";
    if (landlock()) {
        EXPECT_TRUE(text(done, "stdout").starts_with("refused\n")) << json::serialize(done);
    } else {
        EXPECT_EQ(text(done, "stdout"), expected) << json::serialize(done);
    }
}

ARS_INSTANTIATE_CASES(BoundaryCases);

}  // namespace
}  // namespace ars::tests
