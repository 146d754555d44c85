// The binary under test as a person or a program would drive it: one `ars exec --batch` process, a
// line in, an outcome out. Every case of the suite goes through here, so each runs in every tier
// and on every backend.
#pragma once

#include "tests/support/process.hpp"

#include <boost/json/object.hpp>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ars::tests {

namespace json = boost::json;

// One column of the suite: values of --tier and --io. "auto" passes no flag.
struct Setting {
    std::string tier = "auto";
    std::string io = "auto";
    [[nodiscard]] std::vector<std::string> flags() const;
};
void PrintTo(const Setting& setting, std::ostream* out);

struct SessionOptions {
    std::string workspace;  // --workspace; empty: the binary's own choice
    std::string directory;  // commands start there; empty: in the workspace
    std::map<std::string, std::string>
        environment;                   // of the binary, added to PATH, HOME and TMPDIR
    std::vector<std::string> flags;    // more flags of `ars exec`
    std::vector<std::string> wrapper;  // a program that starts the binary, with its arguments
};

class Session {
  public:
    explicit Session(const Setting& setting, SessionOptions options = {});
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
    ~Session();

    // Throws std::runtime_error, with what the binary said, when no answer comes within `limit`.
    json::object ask(
        const json::object& line, std::chrono::milliseconds limit = std::chrono::seconds(40)
    );
    // A shell text, with more keys of the line ("timeout", "wait", "stdin", ...).
    json::object run(const std::string& script, json::object more = {});
    json::object run(std::vector<std::string> argv, json::object more = {});

    void kill_binary();  // SIGKILL, as a crash would
    int close();         // end of input; the exit code
    [[nodiscard]] pid_t pid() const { return pid_; }
    [[nodiscard]] std::string err() const { return read_text(dir_.path() + "/err"); }

  private:
    TempDir dir_;
    pid_t pid_ = -1;
    int in_ = -1;
    int out_ = -1;
    std::string directory_;
    std::string pending_;
    std::optional<int> exit_code_;
};

// The PATH that tools get, and the binary when nothing else is given.
inline constexpr const char* kToolPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// The argument list of `ars exec` in a setting, up to and without "--".
std::vector<std::string> exec_argv(const Setting& setting, const SessionOptions& options = {});
// One command with its outcome as JSON, in a process of its own.
json::object exec_json(
    const Setting& setting, std::vector<std::string> argv, const SessionOptions& options = {}
);

std::string text(const json::object& object, const char* key);
std::int64_t number(const json::object& object, const char* key);
// Text of `key` holds `part`.
bool holds(const json::object& object, const char* key, const std::string& part);
// The bytes behind the base64 text of `key`.
std::string bytes(const json::object& object, const char* key);

testing::AssertionResult exited(const json::object& outcome, int code);
testing::AssertionResult has_status(const json::object& outcome, const std::string& status);

}  // namespace ars::tests
