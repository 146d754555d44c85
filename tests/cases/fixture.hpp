// What the tests of all cases share: the columns they run in, what the doctor says of this machine,
// and one session a test.
#pragma once

#include "tests/cases/session.hpp"

#include <memory>

namespace ars::tests {

// What `ars doctor --json` says about this machine; asked once.
const json::object& doctor();
// The probe of that name; fails the test when there is none.
json::object probe(const json::object& report, const std::string& name);
// "namespaces" or "landlock": "auto" is what the doctor names.
std::string tier_of(const Setting& setting);

// A number that no other test has in an argument list: `sleep <marker>` is found by
// processes_with().
std::string marker();
// Waits up to two seconds for nothing with the marker to be left; how many are.
int survivors(const std::string& marker);

// Writes an appliance.yaml with these lines as sandbox.policies; its path, for --config.
std::string write_config(const TempDir& directory, const std::string& policies);

// Found on the PATH that tools get.
bool has_program(const std::string& name);
// `unshare --mount` works here.
bool may_mount();
// A directory of another owner can be shown to tools as theirs: an id-mapped mount.
bool may_map_owners();
// /dev/ptmx, as it is outside, opens for everybody.
bool terminals_for_gem();
// A directory that tools may write, for --workspace: gem's where the test runs as root.
void give_to_gem(const std::string& path);
// Copies one into a directory, executable by everybody.
void install_program(const std::string& name, const std::string& directory);

// A directory that tools see as theirs, gone with its content at the end: a workspace of its own,
// or, in the landlock tier, which can mount nothing, one in the only workspace there is.
class Workspace {
  public:
    explicit Workspace(bool landlock);
    [[nodiscard]] const std::string& path() const { return dir_.path(); }
    // How tools name a file of it.
    [[nodiscard]] std::string guest(const std::string& name) const;
    [[nodiscard]] SessionOptions options() const;
    void write(const std::string& name, const std::string& text) const { dir_.write(name, text); }

  private:
    bool landlock_;
    TempDir dir_;
};

// The suite: each test once for each setting of every_setting().
class Cases : public testing::TestWithParam<Setting> {
  protected:
    void SetUp() override;
    // The session of the test, started at its first use.
    Session& session();
    json::object run(const std::string& script, json::object more = {}) {
        return session().run(script, std::move(more));
    }
    json::object python(const std::string& code, json::object more = {}) {
        return session().run(std::vector<std::string>{"python3", "-c", code}, std::move(more));
    }
    // The two columns of a case whose right answer differs.
    [[nodiscard]] bool landlock() const { return tier_ == "landlock"; }
    [[nodiscard]] Workspace& workspace() { return *workspace_; }
    // A workspace with the named programs of tests/sandbox_programs in it.
    std::string workspace_with(const std::vector<std::string>& programs);
    // The tool's argument list as `ars tool` takes it, in this setting and workspace.
    std::vector<std::string> tool_argv(const std::string& name, const json::object& arguments);

    SessionOptions options_;  // of session(): set before its first use

  private:
    std::string tier_;
    std::unique_ptr<Workspace> workspace_;
    std::unique_ptr<Session> session_;
};

#define ARS_NEEDS(program)                                      \
    if (!::ars::tests::has_program(program)) {                  \
        GTEST_SKIP() << "no " << (program) << " in this image"; \
    }
// Without mounts a terminal comes from the machine's own /dev/ptmx, which may be closed to gem.
#define ARS_NEEDS_TERMINALS()                                                            \
    if (landlock() && !terminals_for_gem()) {                                            \
        GTEST_SKIP() << "no terminals in the landlock tier: /dev/ptmx is closed to gem"; \
    }
// A test that makes mounts of its own first. Root of a container may not.
#define ARS_NEEDS_MOUNTS()                                                   \
    if (!may_mount()) {                                                      \
        GTEST_SKIP() << "no mount namespace of a test's own to be had here"; \
    }
#define ARS_NEEDS_ROOT()                             \
    if (::geteuid() != 0) {                          \
        GTEST_SKIP() << "only root can set this up"; \
    }

// The columns: each case runs once for each, as <tier>_<io>. One that this machine does not have is
// skipped with the doctor's reason.
inline std::string setting_name(const testing::TestParamInfo<Setting>& info) {
    return info.param.tier + "_" + info.param.io;
}

inline std::vector<Setting> every_setting() {
    return {
        {"namespaces", "io_uring"},
        {"namespaces", "epoll"},
        {"landlock", "io_uring"},
        {"landlock", "epoll"}
    };
}

#define ARS_INSTANTIATE_CASES(suite)                                                            \
    INSTANTIATE_TEST_SUITE_P(                                                                   \
        In, suite, testing::ValuesIn(::ars::tests::every_setting()), ::ars::tests::setting_name \
    )

}  // namespace ars::tests
