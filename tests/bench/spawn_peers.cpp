#include "tests/bench/spawn_peers.hpp"

#include "base/fd.hpp"
#include "fsmount/tree_removal.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace ars::bench {

namespace {

std::vector<char*> pointers(const Argv& argv) {
    std::vector<char*> out;
    for (const std::string& argument : argv) {
        out.push_back(const_cast<char*>(argument.c_str()));
    }
    out.push_back(nullptr);
    return out;
}

bool drain_and_reap(base::Pipe pipe, pid_t pid) {
    pipe.write.reset();
    char buffer[4096];
    while (::read(pipe.read.get(), buffer, sizeof buffer) > 0) {
    }
    int status = 0;
    return ::waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool run_vfork(const Argv& argv) {
    auto pipe = base::make_pipe();
    if (!pipe) {
        return false;
    }
    const std::vector<char*> arguments = pointers(argv);
    const int out = pipe->write.get();
    static const int silence = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    const pid_t pid = ::vfork();
    if (pid == 0) {
        ::dup2(out, 1);
        ::dup2(silence, 2);
        ::execv(arguments[0], arguments.data());
        ::_exit(127);
    }
    return pid > 0 && drain_and_reap(std::move(*pipe), pid);
}

bool run_posix_spawn(const Argv& argv) {
    auto pipe = base::make_pipe();
    if (!pipe) {
        return false;
    }
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, pipe->write.get(), 1);
    pid_t pid = 0;
    const std::vector<char*> arguments = pointers(argv);
    const int error =
        ::posix_spawn(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    return error == 0 && drain_and_reap(std::move(*pipe), pid);
}

std::string find_program(const char* name) {
    for (const char* folder : {"/usr/bin/", "/usr/sbin/", "/usr/local/bin/"}) {
        if (::access((folder + std::string(name)).c_str(), X_OK) == 0) {
            return folder + std::string(name);
        }
    }
    return {};
}

Peer prefixed(std::string name, Argv prefix) {
    return {std::move(name), [prefix = std::move(prefix)](const Argv& argv) {
                Argv whole = prefix;
                whole.insert(whole.end(), argv.begin(), argv.end());
                return run_vfork(whole);
            }};
}

// An OCI runtime takes its program from a file; one bundle per program, made at the first call.
class OciPeer {
  public:
    explicit OciPeer(std::string runtime) : runtime_(std::move(runtime)) {}
    OciPeer(const OciPeer&) = delete;
    OciPeer& operator=(const OciPeer&) = delete;
    ~OciPeer() { fsmount::remove_tree(bundle_); }

    bool run(const Argv& argv) {
        static int counter = 0;
        write_config(bundle_, argv);
        const std::string name = "ars-bench-" + std::to_string(++counter);
        return run_vfork({runtime_, "run", "--bundle", bundle_, name});
    }

  private:
    void write_config(const std::string& bundle, const Argv& argv) {
        if (argv == written_) {
            return;
        }
        written_ = argv;
        std::error_code ignored;
        for (const char* folder : {"usr", "proc", "dev"}) {
            std::filesystem::create_directories(bundle + "/rootfs/" + folder, ignored);
        }
        for (const char* folder : {"bin", "lib", "lib64"}) {
            std::filesystem::create_symlink(
                std::string("usr/") + folder, bundle + "/rootfs/" + folder, ignored
            );
        }
        std::string arguments;
        for (const std::string& argument : argv) {
            arguments += (arguments.empty() ? "\"" : ", \"") + argument + "\"";
        }
        std::ofstream(
            bundle + "/config.json"
        ) << R"({"ociVersion": "1.0.0", "process": {"cwd": "/", "user": {"uid": 0, "gid": 0}, "noNewPrivileges": true, "args": [)"
          << arguments << R"(], "env": ["PATH=/usr/bin:/bin"]},)"
          << R"("root": {"path": "rootfs", "readonly": true},)"
          << R"("mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},)"
          << R"({"destination": "/usr", "type": "bind", "source": "/usr", "options": ["rbind", "ro"]}],)"
          << R"("linux": {"namespaces": [{"type": "pid"}, {"type": "mount"}, {"type": "ipc"},)"
          << R"({"type": "uts"}, {"type": "network"}]}})";
    }

    std::string runtime_;
    std::string bundle_ = "/tmp/ars-bench-" + std::to_string(::getpid());
    Argv written_;
};

}  // namespace

std::vector<Peer> find_peers() {
    std::vector<Peer> peers{{"vfork + exec", run_vfork}, {"posix_spawn", run_posix_spawn}};
    if (const std::string bwrap = find_program("bwrap"); !bwrap.empty()) {
        peers.push_back(prefixed(
            "bubblewrap",
            {bwrap,
             "--unshare-all",
             "--ro-bind",
             "/",
             "/",
             "--proc",
             "/proc",
             "--dev",
             "/dev",
             "--tmpfs",
             "/tmp"}
        ));
    }
    if (const std::string unshare = find_program("unshare"); !unshare.empty()) {
        peers.push_back(prefixed("unshare(1)", {unshare, "-Urmpinuf", "--mount-proc", "--"}));
    }
    for (const char* name : {"crun", "runc"}) {
        if (const std::string runtime = find_program(name); !runtime.empty()) {
            auto peer = std::make_shared<OciPeer>(runtime);
            peers.push_back({name, [peer](const Argv& argv) { return peer->run(argv); }});
        }
    }
    return peers;
}

}  // namespace ars::bench
