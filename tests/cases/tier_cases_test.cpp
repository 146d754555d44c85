// C95-C101: hosts that lack something. Each is made here with a filter, a mount or an identity, and
// the binary must say what is missing and go on with what is there.
#include "tests/cases/fixture.hpp"
#include "tests/support/process_family.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <chrono>
#include <fstream>

#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ars::tests {
namespace {

using namespace std::chrono_literals;

class TierCases : public Cases {
  protected:
    // A program of ours in front of the binary.
    static std::vector<std::string> refusing(
        const std::string& error, std::initializer_list<long> calls
    ) {
        std::vector<std::string> wrapper{sandbox_program("refuse_calls"), error};
        for (const long call : calls) {
            wrapper.push_back(std::to_string(call));
        }
        wrapper.emplace_back("--");
        return wrapper;
    }
    static json::object doctor_behind(std::vector<std::string> wrapper) {
        wrapper.insert(wrapper.end(), {ars_binary(), "doctor", "--json"});
        const Finished done = ars::tests::run(wrapper);
        boost::system::error_code error;
        const json::value report = json::parse(done.out, error);
        if (error || !report.is_object()) {
            throw std::runtime_error("no report: " + done.out + done.err);
        }
        return report.as_object();
    }
    // A shell that made mounts of its own first, invisible outside.
    static std::vector<std::string> with_mounts(const std::string& script) {
        return {
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            script + "; exec \"$@\"",
            "sh"
        };
    }
};

// All other cases skip a tier that the doctor does not name.
TEST(Doctor, NamesTheNamespacesTierWhereACommandGetsIt) {
    const json::object done = exec_json({.tier = "namespaces"}, {"true"});
    EXPECT_EQ(text(doctor(), "tier") == "namespaces", bool(exited(done, 0)))
        << json::serialize(doctor()) << json::serialize(done);
}

TEST_P(TierCases, CrashOfTheBinaryLeavesNoProcess) {
    const std::string mark = marker();
    EXPECT_TRUE(exited(
        run("sleep " + mark + " & setsid sleep " + mark + " & (setsid sleep " + mark + " &); true"),
        0
    ));
    const Family family = family_of(session().pid());
    EXPECT_GE(family.size(), 4U);
    session().kill_binary();
    EXPECT_EQ(left_of(family, 1s), "");
    EXPECT_EQ(survivors(mark), 0);
}

TEST_P(TierCases, C66_StartsOnAReadOnlyRoot) {
    struct statvfs root{};
    ASSERT_EQ(::statvfs("/", &root), 0);
    if ((root.f_flag & ST_RDONLY) == 0U) {
        ARS_NEEDS_MOUNTS();
        const std::string parent = workspace().path().substr(0, workspace().path().rfind('/'));
        options_.wrapper = with_mounts(
            "mount --bind /tmp /tmp && mount --bind " + parent + " " + parent +
            " && mount -o remount,bind,ro / && ! touch /etc/x 2>/dev/null"
        );
    }
    EXPECT_EQ(text(run("echo here; touch f && echo written"), "stdout"), "here\nwritten\n");
}

TEST_P(TierCases, C95_RefusedIoUringMeansEpollAndASentence) {
    const json::object report = doctor_behind(refusing("EPERM", {SYS_io_uring_setup}));
    EXPECT_EQ(text(report, "io_backend"), "epoll");
    const json::object ring = probe(report, "io_uring");
    EXPECT_FALSE(ring.at("works").as_bool());
    EXPECT_EQ(number(ring, "errno"), EPERM);
    EXPECT_FALSE(text(ring, "remedy").empty());
    if (GetParam().io != "io_uring") {
        options_.wrapper = refusing("EPERM", {SYS_io_uring_setup});
        EXPECT_EQ(text(run("echo out; echo err >&2"), "stdout"), "out\n");
    }
}

TEST_P(TierCases, C96_MissingPrimitivesAreListedAndTheFileToolsGoOn) {
    for (const char* error : {"ENOSYS", "EPERM"}) {
        const json::object report =
            doctor_behind(refusing(error, {SYS_openat2, SYS_landlock_create_ruleset}));
        EXPECT_FALSE(probe(report, "openat2").at("works").as_bool()) << error;
        EXPECT_FALSE(probe(report, "landlock").at("works").as_bool()) << error;
        workspace().write("f", "mine\n");
        std::vector<std::string> read = refusing(error, {SYS_openat2});
        const std::vector<std::string> tool =
            tool_argv("read_file", {{"file_path", workspace().guest("f")}});
        read.insert(read.end(), tool.begin(), tool.end());
        const Finished done = ars::tests::run(read);
        EXPECT_NE(done.out.find("mine"), std::string::npos) << error << done.out << done.err;
    }
}

TEST_P(TierCases, C97_UserNamespaceWithoutRightsIsToldByTheStepThatFailed) {
    // As where AppArmor lets the namespace be made and then takes its capabilities: mounts fail,
    // nothing else.
    const json::object report = doctor_behind(refusing("EACCES", {SYS_mount}));
    EXPECT_NE(text(report, "tier"), "namespaces");
    // Refused already here, as by a container engine: then that is the step.
    if (!probe(doctor(), "user_namespace").at("works").as_bool()) {
        EXPECT_FALSE(text(probe(report, "user_namespace"), "remedy").empty());
        return;
    }
    EXPECT_TRUE(probe(report, "user_namespace").at("works").as_bool()) << json::serialize(report);
    const json::object mounts = probe(report, "mounts");
    EXPECT_FALSE(mounts.at("works").as_bool());
    EXPECT_FALSE(text(mounts, "remedy").empty()) << json::serialize(mounts);
}

TEST_P(TierCases, C98_RootWithoutAdminRightsIsNotTakenForRoot) {
    ARS_NEEDS_ROOT();
    options_.wrapper = {
        "setpriv", "--bounding-set", "-sys_admin,-net_admin,-sys_ptrace", "--inh-caps", "-sys_admin"
    };
    const json::object done = run(
        "id -u; id -g; grep -E '^Cap(Inh|Prm|Eff|Bnd|Amb)' /proc/self/status | cut -f2 | sort -u"
    );
    EXPECT_EQ(text(done, "stdout"), "1000\n1000\n0000000000000000\n") << json::serialize(done);
}

TEST_P(TierCases, C99_AbsentCgroupIsToldWithTheRemedy) {
    const json::object group = probe(doctor(), "cgroup");
    if (!group.at("works").as_bool()) {
        EXPECT_FALSE(text(group, "detail").empty());
        EXPECT_FALSE(text(group, "remedy").empty());
    }
}

TEST_P(TierCases, C100_MaskedProcIsToldAndTheWallsHold) {
    ARS_NEEDS_MOUNTS();
    // What container engines do: something mounted over a part of /proc, which no fresh procfs may
    // then uncover.
    options_.wrapper = with_mounts("mount -t tmpfs none /proc/sys");
    options_.environment = {{"ARS_CASE_SECRET", "hunter2"}};
    const json::object report = doctor_behind(options_.wrapper);
    if (text(report, "tier") == "namespaces") {
        EXPECT_EQ(text(report, "proc"), "outer");
    }
    const std::string pid = std::to_string(session().pid());
    const json::object done = run(
        "for p in /proc/[0-9]*; do tr '\\0' '\\n' <$p/environ; done 2>/dev/null | grep -c hunter2; "
        "kill -9 " +
        pid + " 2>/dev/null || echo safe"
    );
    EXPECT_EQ(text(done, "stdout"), "0\nsafe\n") << json::serialize(done);
    EXPECT_EQ(text(run("echo here"), "stdout"), "here\n");
}

TEST_P(TierCases, C101_MountThatNeverAnswersDoesNotHoldTheStart) {
    ARS_NEEDS_MOUNTS();
    if (::access("/dev/fuse", R_OK | W_OK) != 0) {
        GTEST_SKIP() << "no /dev/fuse on this machine";
    }
    options_.wrapper = {
        "unshare", "--mount", "--propagation", "private", sandbox_program("silent_mount"), "/mnt"
    };
    EXPECT_EQ(text(run("echo here"), "stdout"), "here\n");
    const json::object report = doctor_behind(options_.wrapper);
    EXPECT_EQ(text(report, "tier"), text(doctor(), "tier")) << json::serialize(report);
}

ARS_INSTANTIATE_CASES(TierCases);

}  // namespace
}  // namespace ars::tests
