#include "tests/support/process.hpp"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ars::tests {

namespace {

std::string make_temp_directory(const std::string& parent = "/tmp") {
    std::string path = parent + "/ars-test-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) {
        throw std::runtime_error("mkdtemp failed");
    }
    ::chmod(path.c_str(), 0755);
    return path;
}

// Only what the test made itself, below /tmp: no link of somebody else's is in there.
void remove_tree(const std::string& path) {
    std::error_code ignored;
    for (auto it = std::filesystem::recursive_directory_iterator(path, ignored);
         it != std::filesystem::recursive_directory_iterator();
         it.increment(ignored)) {
        if (it->is_directory(ignored) && !it->is_symlink(ignored)) {
            std::filesystem::permissions(it->path(), std::filesystem::perms::owner_all, ignored);
        }
    }
    std::vector<std::filesystem::path> all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path, ignored)) {
        all.push_back(entry.path());
    }
    for (auto it = all.rbegin(); it != all.rend(); ++it) {
        std::filesystem::remove(*it, ignored);
    }
    std::filesystem::remove(path, ignored);
}

}  // namespace

Process::Process(
    std::vector<std::string> argv,
    std::map<std::string, std::string> environment,
    std::string stdin_text
)
    : directory_(make_temp_directory()) {
    std::ofstream(directory_ + "/in") << stdin_text;
    environment.emplace("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    environment.emplace("HOME", directory_);
    environment.emplace("TMPDIR", "/tmp");
    std::vector<std::string> pairs;
    for (const auto& [name, value] : environment) {
        pairs.push_back(name + "=" + value);
    }
    std::vector<char*> arguments;
    for (std::string& argument : argv) {
        arguments.push_back(argument.data());
    }
    arguments.push_back(nullptr);
    std::vector<char*> variables;
    for (std::string& pair : pairs) {
        variables.push_back(pair.data());
    }
    variables.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, (directory_ + "/in").c_str(), O_RDONLY, 0);
    posix_spawn_file_actions_addopen(
        &actions, 1, (directory_ + "/out").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644
    );
    posix_spawn_file_actions_addopen(
        &actions, 2, (directory_ + "/err").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644
    );
    const int error =
        ::posix_spawnp(&pid_, arguments[0], &actions, nullptr, arguments.data(), variables.data());
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
        remove_tree(directory_);
        throw std::runtime_error("can't start " + argv[0]);
    }
}

Process::~Process() {
    if (!reaped_) {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, &status_, 0);
    }
    remove_tree(directory_);
}

void Process::signal(int number) const {
    if (!reaped_) {
        ::kill(pid_, number);
    }
}

bool Process::running() {
    if (!reaped_ && ::waitpid(pid_, &status_, WNOHANG) == pid_) {
        reaped_ = true;
    }
    return !reaped_;
}

Finished Process::wait(std::chrono::milliseconds limit) {
    const auto until = std::chrono::steady_clock::now() + limit;
    while (running()) {
        if (std::chrono::steady_clock::now() > until) {
            ::kill(pid_, SIGKILL);
            ::waitpid(pid_, &status_, 0);
            reaped_ = true;
            break;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    const int code = WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
    return Finished{code, out(), err()};
}

std::string Process::out() const { return read_text(directory_ + "/out"); }
std::string Process::err() const { return read_text(directory_ + "/err"); }

Finished run(
    std::vector<std::string> argv,
    std::map<std::string, std::string> environment,
    std::string stdin_text,
    std::chrono::milliseconds limit
) {
    Process process(std::move(argv), std::move(environment), std::move(stdin_text));
    return process.wait(limit);
}

std::string ars_binary() {
    const char* other = std::getenv("ARS_BINARY");
    return other != nullptr ? other : ARS_BINARY;
}
std::string sandbox_program(const std::string& name) {
    const char* const folder = std::getenv("ARS_SANDBOX_PROGRAMS");
    return std::string(folder != nullptr ? folder : ARS_SANDBOX_PROGRAMS) + "/" + name;
}

std::vector<std::string> without_namespaces(std::vector<std::string> command) {
    std::vector<std::string> argv{
        sandbox_program("refuse_calls"), "EPERM", std::to_string(SYS_unshare), "--"
    };
    argv.insert(argv.end(), command.begin(), command.end());
    return argv;
}

std::string source_directory() { return ARS_SOURCE_DIR; }

TempDir::TempDir(const std::string& parent) : path_(make_temp_directory(parent)) {}
TempDir::~TempDir() { remove_tree(path_); }

std::string TempDir::write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = std::filesystem::path(path_) / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
    return file.string();
}

std::string read_text(const std::string& path) {
    std::ifstream in(path);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

int processes_with(const std::string& marker) {
    int count = 0;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
        const std::string line = read_text(entry.path() / "cmdline");
        count += line.find(marker) != std::string::npos ? 1 : 0;
    }
    return count;
}

bool no_process_stays_with(const std::string& marker) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (processes_with(marker) != 0) {
        if (std::chrono::steady_clock::now() > until) {
            return false;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return true;
}

}  // namespace ars::tests
