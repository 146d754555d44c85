// The program's own main: it runs the tests, or plays the process that a test kills.
#include "tests/unit/runtime/store/child_process.hpp"
#include "tests/unit/runtime/store/store_fixture.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ars::store {

namespace {

void say(const std::string& line) {
    if (!base::write_all(STDOUT_FILENO, line + "\n")) {
        std::_Exit(3);
    }
}

std::unique_ptr<Store> open_store(const std::string& directory) {
    auto store =
        Store::open({.directory = directory, .max_size = 256 * base::limits::kMiB}, quiet_log());
    if (!store) {
        say(store.error().code);
        std::_Exit(2);
    }
    return *std::move(store);
}

// Four threads each write one message after the other to a thread of their own, and say so after
// each.
int write_for_ever(const std::string& directory) {
    const auto store = open_store(directory);
    std::vector<std::jthread> writers;
    for (ThreadNo thread = 1; thread <= 4; ++thread) {
        writers.emplace_back([&store, thread] {
            for (;;) {
                MessageRecord message;
                message.thread = thread;
                const auto written =
                    store->write_blocking([&message](WriteTxn& txn) -> base::Result<void> {
                        message.content.assign(300, 'x');
                        txn.add_message(message);
                        EventRecord event;
                        event.run = message.thread;
                        txn.add_event(event);
                        return {};
                    });
                if (!written) {
                    std::_Exit(4);
                }
                say(std::to_string(message.seq));
            }
        });
    }
    return 0;
}

int read_for_ever(const std::string& directory) {
    const auto store = open_store(directory);
    store->read([](const ReadTxn&) {
        say("reading");
        ::pause();
        return 0;
    });
    return 0;
}

// Fills a file system of one megabyte, then frees some of it and goes on.
int fill_disk(const std::string& directory) {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, "") != 0 ||
        ::mount("none", directory.c_str(), "tmpfs", 0, "size=1m") != 0) {
        say("unable");
        return 0;
    }
    {
        // What is freed later.
        const auto ballast = base::open_file(directory + "/ballast", O_RDWR | O_CREAT, 0600);
        if (!ballast || ::posix_fallocate(ballast->get(), 0, 256 * 1024) != 0) {
            return 5;
        }
    }
    const auto store = open_store(directory + "/store");
    const auto add = [&store] {
        return store->write_blocking([](WriteTxn& txn) -> base::Result<void> {
            MessageRecord message;
            message.thread = 1;
            message.content.assign(20'000, 'x');
            txn.add_message(message);
            return {};
        });
    };
    std::size_t written = 0;
    auto result = add();
    for (; result && written < 1000; result = add()) {
        ++written;
    }
    say(result ? "never full" : result.error().code);
    ::unlink((directory + "/ballast").c_str());
    result = add();
    say(result ? "goes on" : result.error().message);
    const std::size_t stored =
        store->read([](const ReadTxn& txn) { return txn.messages(1).size(); });
    say(stored == written + 1 ? "all there" : "lost some");
    return 0;
}

}  // namespace

int run_child(const std::string& role, const std::string& directory) {
    if (role == "write") {
        return write_for_ever(directory);
    }
    if (role == "read") {
        return read_for_ever(directory);
    }
    if (role == "fill") {
        return fill_disk(directory);
    }
    return 64;
}

ChildProcess::ChildProcess(const std::string& role, const std::string& directory) {
    auto pipe = base::make_pipe();
    if (!pipe) {
        throw std::runtime_error(pipe.error().message);
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipe->write.get(), STDOUT_FILENO);
    std::vector<std::string> arguments = {"store_tests", "--child", role, directory};
    std::vector<char*> argv;
    for (auto& argument : arguments) {
        argv.push_back(argument.data());
    }
    argv.push_back(nullptr);
    const int code =
        ::posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (code != 0) {
        throw std::runtime_error("posix_spawn failed");
    }
    output_ = std::move(pipe->read);
}

ChildProcess::~ChildProcess() {
    kill();
    wait();
}

std::string ChildProcess::read_line() {
    for (;;) {
        if (const auto end = buffer_.find('\n'); end != std::string::npos) {
            const std::string line = buffer_.substr(0, end);
            buffer_.erase(0, end + 1);
            return line;
        }
        char bytes[4096];
        const ssize_t n = ::read(output_.get(), bytes, sizeof bytes);
        if (n <= 0) {
            return {};  // a part of a line that the kill cut off was not said
        }
        buffer_.append(bytes, static_cast<std::size_t>(n));
    }
}

void ChildProcess::kill() {
    if (pid_ > 0) {
        ::kill(pid_, SIGKILL);
    }
}

int ChildProcess::wait() {
    if (pid_ > 0) {
        ::waitpid(pid_, &status_, 0);
        pid_ = -1;
    }
    return WIFSIGNALED(status_) ? -WTERMSIG(status_) : WEXITSTATUS(status_);
}

}  // namespace ars::store

int main(int argc, char** argv) {
    if (argc == 4 && std::strcmp(argv[1], "--child") == 0) {
        return ars::store::run_child(argv[2], argv[3]);
    }
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
