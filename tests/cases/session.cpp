#include "tests/cases/session.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ars::tests {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> list;
    for (std::string& one : texts) {
        list.push_back(one.data());
    }
    list.push_back(nullptr);
    return list;
}

std::vector<std::string> environment_list(std::map<std::string, std::string> environment) {
    environment.emplace("PATH", kToolPath);
    environment.emplace("HOME", "/tmp");
    environment.emplace("TMPDIR", "/tmp");
    std::vector<std::string> list;
    for (const auto& [name, value] : environment) {
        list.push_back(name + "=" + value);
    }
    return list;
}

}  // namespace

std::vector<std::string> Setting::flags() const {
    std::vector<std::string> list;
    if (tier != "auto") {
        list.insert(list.end(), {"--tier", tier});
    }
    if (io != "auto") {
        list.insert(list.end(), {"--io", io});
    }
    return list;
}

void PrintTo(const Setting& setting, std::ostream* out) {
    *out << setting.tier << ", " << setting.io;
}

std::vector<std::string> exec_argv(const Setting& setting, const SessionOptions& options) {
    std::vector<std::string> argv = options.wrapper;
    argv.insert(argv.end(), {ars_binary(), "exec"});
    for (const std::string& flag : setting.flags()) {
        argv.push_back(flag);
    }
    if (!options.workspace.empty()) {
        argv.insert(argv.end(), {"--workspace", options.workspace});
    }
    argv.insert(argv.end(), options.flags.begin(), options.flags.end());
    return argv;
}

Session::Session(const Setting& setting, SessionOptions options) : directory_(options.directory) {
    std::vector<std::string> argv = exec_argv(setting, options);
    argv.emplace_back("--batch");
    std::vector<std::string> environment = environment_list(options.environment);
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0) {
        throw std::runtime_error("pipe2 failed");
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    posix_spawn_file_actions_addopen(
        &actions, 2, (dir_.path() + "/err").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644
    );
    const int error = ::posix_spawnp(
        &pid_,
        argv[0].c_str(),
        &actions,
        nullptr,
        pointers(argv).data(),
        pointers(environment).data()
    );
    posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    in_ = in[1];
    out_ = out[0];
    if (error != 0) {
        throw std::runtime_error("can't start " + argv[0]);
    }
}

Session::~Session() { close(); }

json::object Session::ask(const json::object& line, std::chrono::milliseconds limit) {
    const std::string sent = json::serialize(line) + "\n";
    for (std::size_t done = 0; done < sent.size();) {
        const ssize_t n = ::write(in_, sent.data() + done, sent.size() - done);
        if (n < 0) {
            throw std::runtime_error("ars exec reads no more: " + err());
        }
        done += static_cast<std::size_t>(n);
    }
    const auto until = Clock::now() + limit;
    for (;;) {
        if (const std::size_t end = pending_.find('\n'); end != std::string::npos) {
            const std::string answer = pending_.substr(0, end);
            pending_.erase(0, end + 1);
            return json::parse(answer).as_object();
        }
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
        pollfd readable{out_, POLLIN, 0};
        if (left.count() <= 0 || ::poll(&readable, 1, static_cast<int>(left.count())) <= 0) {
            throw std::runtime_error("no answer to " + sent + err());
        }
        char buffer[65536];
        const ssize_t n = ::read(out_, buffer, sizeof buffer);
        if (n <= 0) {
            throw std::runtime_error("ars exec ended instead of answering " + sent + err());
        }
        pending_.append(buffer, static_cast<std::size_t>(n));
    }
}

json::object Session::run(const std::string& script, json::object more) {
    more["command"] = directory_.empty() ? script : "cd " + directory_ + "\n" + script;
    return ask(more);
}

json::object Session::run(std::vector<std::string> argv, json::object more) {
    if (!directory_.empty()) {
        argv.insert(argv.begin(), {"env", "--chdir", directory_});
    }
    more["command"] = json::array(argv.begin(), argv.end());
    return ask(more);
}

void Session::kill_binary() {
    if (!exit_code_) {
        ::kill(pid_, SIGKILL);
        close();
    }
}

int Session::close() {
    if (exit_code_) {
        return *exit_code_;
    }
    ::close(in_);
    int status = 0;
    const auto until = Clock::now() + 15s;
    while (::waitpid(pid_, &status, WNOHANG) == 0) {
        if (Clock::now() > until) {
            ::kill(pid_, SIGKILL);
            ::waitpid(pid_, &status, 0);
            break;
        }
        std::this_thread::sleep_for(1ms);
    }
    ::close(out_);
    exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return *exit_code_;
}

json::object exec_json(
    const Setting& setting, std::vector<std::string> argv, const SessionOptions& options
) {
    std::vector<std::string> whole = exec_argv(setting, options);
    whole.insert(whole.end(), {"--json", "--"});
    whole.insert(whole.end(), argv.begin(), argv.end());
    const Finished done = ars::tests::run(whole, options.environment);
    boost::system::error_code error;
    const json::value parsed = json::parse(done.out, error);
    if (error || !parsed.is_object()) {
        throw std::runtime_error("no outcome: " + done.out + done.err);
    }
    return parsed.as_object();
}

std::string text(const json::object& object, const char* key) {
    const json::value* value = object.if_contains(key);
    return value != nullptr && value->is_string() ? std::string(value->get_string())
                                                  : std::string();
}

std::int64_t number(const json::object& object, const char* key) {
    const json::value* value = object.if_contains(key);
    return value != nullptr && value->is_number() ? value->to_number<std::int64_t>() : -1;
}

bool holds(const json::object& object, const char* key, const std::string& part) {
    return text(object, key).find(part) != std::string::npos;
}

std::string bytes(const json::object& object, const char* key) {
    static const std::string alphabet =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    unsigned bits = 0;
    int count = 0;
    for (const char c : text(object, key)) {
        const std::size_t value = alphabet.find(c);
        if (value == std::string::npos) {
            break;
        }
        bits = (bits << 6U) | static_cast<unsigned>(value);
        count += 6;
        if (count >= 8) {
            count -= 8;
            out += static_cast<char>((bits >> static_cast<unsigned>(count)) & 0xFFU);
        }
    }
    return out;
}

testing::AssertionResult exited(const json::object& outcome, int code) {
    if (text(outcome, "status") == "exited" && number(outcome, "exit_code") == code) {
        return testing::AssertionSuccess();
    }
    return testing::AssertionFailure()
           << "not exited with " << code << ": " << json::serialize(outcome);
}

testing::AssertionResult has_status(const json::object& outcome, const std::string& status) {
    if (text(outcome, "status") == status) {
        return testing::AssertionSuccess();
    }
    return testing::AssertionFailure() << "not " << status << ": " << json::serialize(outcome);
}

}  // namespace ars::tests
