#include "tests/cases/fixture.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ars::tests {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr const char* kUserData = "/home/gem/user-data";

// Made as the image would have it.
std::string user_data() {
    if (std::filesystem::create_directories(kUserData)) {
        give_to_gem("/home/gem");
        give_to_gem(kUserData);
    }
    return kUserData;
}

}  // namespace

const json::object& doctor() {
    static const json::object report = [] {
        const Finished done = ars::tests::run({ars_binary(), "doctor", "--json"});
        return json::parse(done.out).as_object();
    }();
    return report;
}

json::object probe(const json::object& report, const std::string& name) {
    for (const json::value& one : report.at("probes").as_array()) {
        if (text(one.as_object(), "name") == name) {
            return one.as_object();
        }
    }
    ADD_FAILURE() << "the doctor has no probe " << name << ": " << json::serialize(report);
    return {};
}

std::string tier_of(const Setting& setting) {
    return setting.tier == "auto" ? text(doctor(), "tier") : setting.tier;
}

namespace {

// Why a setting can't be tried here; the doctor's word, never a failed start of the binary.
std::optional<std::string> not_offered(const Setting& setting) {
    const std::string best = text(doctor(), "tier");
    if (best != "namespaces" && best != "landlock") {
        return "no tier at all on this machine: " + best;
    }
    if (setting.tier == "namespaces" && best != "namespaces") {
        return "no namespaces tier on this machine";
    }
    if (setting.tier == "landlock" && !probe(doctor(), "landlock").at("works").as_bool()) {
        return "no landlock tier on this machine: " + text(probe(doctor(), "landlock"), "detail");
    }
    if (setting.io == "io_uring" && !probe(doctor(), "io_uring").at("works").as_bool()) {
        return "no io_uring on this machine: " + text(probe(doctor(), "io_uring"), "detail");
    }
    return std::nullopt;
}

}  // namespace

void Cases::SetUp() {
    ::signal(SIGPIPE, SIG_IGN);
    if (const auto reason = not_offered(GetParam())) {
        GTEST_SKIP() << *reason;
    }
    tier_ = tier_of(GetParam());
    if (landlock() && ::access(kUserData, X_OK) != 0 && ::geteuid() != 0) {
        GTEST_SKIP() << "the landlock tier works in " << kUserData
                     << ", and only root can make that";
    }
    workspace_ = std::make_unique<Workspace>(landlock());
}

Workspace::Workspace(bool landlock)
    : landlock_(landlock), dir_(landlock ? user_data() : std::string("/tmp")) {
    give_to_gem(dir_.path());
}

std::string Workspace::guest(const std::string& name) const {
    return (landlock_ ? dir_.path() : std::string(kUserData)) + "/" + name;
}

SessionOptions Workspace::options() const {
    SessionOptions options;
    (landlock_ ? options.directory : options.workspace) = dir_.path();
    return options;
}

Session& Cases::session() {
    if (!session_) {
        const SessionOptions own = workspace_->options();
        if (options_.workspace.empty()) {
            options_.workspace = own.workspace;
            options_.directory = own.directory;
        }
        session_ = std::make_unique<Session>(GetParam(), options_);
    }
    return *session_;
}

std::vector<std::string> Cases::tool_argv(const std::string& name, const json::object& arguments) {
    std::vector<std::string> argv{ars_binary(), "tool"};
    for (const std::string& flag : GetParam().flags()) {
        argv.push_back(flag);
    }
    argv.insert(argv.end(), {name, json::serialize(arguments)});
    if (const SessionOptions own = workspace_->options(); !own.workspace.empty()) {
        argv.insert(argv.end(), {"--workspace", own.workspace});
    }
    return argv;
}

std::string Cases::workspace_with(const std::vector<std::string>& programs) {
    for (const std::string& name : programs) {
        install_program(name, workspace_->path());
    }
    return workspace_->path();
}

std::string marker() {
    static std::atomic<int> count{0};
    return "7" + std::to_string(::getpid()) + std::to_string(count.fetch_add(1)) + "9";
}

int survivors(const std::string& marker) {
    const auto until = Clock::now() + 10s;
    int count = processes_with(marker);
    while (count > 0 && Clock::now() < until) {
        std::this_thread::sleep_for(20ms);
        count = processes_with(marker);
    }
    return count;
}

std::string write_config(const TempDir& directory, const std::string& policies) {
    return directory.write(
        "appliance.yaml",
        "models:\n  default: \"main:x\"\n  providers:\n"
        "    main: {type: openai, base_url: \"http://127.0.0.1:9/v1\"}\n"
        "sandbox:\n  policies:\n    " +
            policies + "\n"
    );
}

bool has_program(const std::string& name) {
    std::istringstream path{std::string(kToolPath)};
    for (std::string directory; std::getline(path, directory, ':');) {
        if (::access((directory + "/" + name).c_str(), X_OK) == 0) {
            return true;
        }
    }
    return false;
}

bool may_mount() { return ars::tests::run({"unshare", "--mount", "true"}).exit_code == 0; }

bool may_map_owners() {
    const TempDir roots;
    const Finished done = ars::tests::run(
        {ars_binary(), "exec", "--allow-root-owner", "--workspace", roots.path(), "--", "true"}
    );
    return done.err.find("no id-mapped mount") == std::string::npos;
}

bool terminals_for_gem() {
    struct stat ptmx{};
    return ::stat("/dev/ptmx", &ptmx) == 0 && (ptmx.st_mode & 0006U) == 0006U;
}

void give_to_gem(const std::string& path) {
    if (::geteuid() == 0 && ::chown(path.c_str(), 1000, 1000) != 0) {
        throw std::runtime_error("chown " + path);
    }
}

void install_program(const std::string& name, const std::string& directory) {
    const std::string target = directory + "/" + name;
    std::filesystem::copy_file(sandbox_program(name), target);
    ::chmod(target.c_str(), 0755);
}

}  // namespace ars::tests
