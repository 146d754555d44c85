// A child process of a test: started with its output in files, stopped by pid, never left behind.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

namespace ars::tests {

struct Finished {
    int exit_code = -1;  // 128 + n when signalled
    std::string out;
    std::string err;
};

class Process {
  public:
    // `environment` is added to a small clean one (PATH, HOME, TMPDIR).
    Process(
        std::vector<std::string> argv,
        std::map<std::string, std::string> environment = {},
        std::string stdin_text = {}
    );
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;
    ~Process();  // SIGKILL when still running

    void signal(int number) const;
    // Waits at most `limit`, then kills: exit_code 137.
    Finished wait(std::chrono::milliseconds limit = std::chrono::seconds(60));
    [[nodiscard]] bool running();
    [[nodiscard]] pid_t pid() const { return pid_; }
    [[nodiscard]] std::string out() const;
    [[nodiscard]] std::string err() const;

  private:
    pid_t pid_ = -1;
    int status_ = -1;
    bool reaped_ = false;
    std::string directory_;
};

// Runs a program to its end.
Finished run(
    std::vector<std::string> argv,
    std::map<std::string, std::string> environment = {},
    std::string stdin_text = {},
    std::chrono::milliseconds limit = std::chrono::seconds(60)
);

// The binary under test: CMake passes its path; ARS_BINARY names another (in a container, the
// image's).
std::string ars_binary();
// The path of a program of tests/sandbox_programs.
std::string sandbox_program(const std::string& name);
// The command as on a host that refuses namespaces, as most container engines do: what it finds
// there is the landlock tier.
std::vector<std::string> without_namespaces(std::vector<std::string> command);
// The source tree, for configs/.
std::string source_directory();

// A fresh directory below `parent`, mode 0755, removed at the end with what is in it.
class TempDir {
  public:
    explicit TempDir(const std::string& parent = "/tmp");
    TempDir(const TempDir&) = delete;
    TempDir& operator=(const TempDir&) = delete;
    ~TempDir();
    [[nodiscard]] const std::string& path() const { return path_; }
    // Writes a file below it, making parents.
    std::string write(const std::string& name, const std::string& text) const;

  private:
    std::string path_;
};

std::string read_text(const std::string& path);

// Processes anywhere on the host whose command line holds `marker`.
int processes_with(const std::string& marker);
// Whether they are gone in half a minute: what died with its server takes a moment to end.
bool no_process_stays_with(const std::string& marker);

}  // namespace ars::tests
