// A real workspace in a temporary directory, for tests of files and tools.
#pragma once

#include "fsmount/workspace.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ars::fsmount {

class TemporaryDirectory {
  public:
    TemporaryDirectory() {
        std::string pattern = "/tmp/ars-test-XXXXXX";
        path_ = ::mkdtemp(pattern.data());
        // Scopes run as gem even when the tests run as root.
        ::chmod(path_.c_str(), 0755);
    }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    ~TemporaryDirectory() {
        const auto remove = [](const char* path, const struct stat*, int, FTW*) {
            return ::remove(path);
        };
        ::nftw(path_.c_str(), remove, 32, FTW_DEPTH | FTW_PHYS);
    }
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::string path_;
};

// Runs `work` as tools run: permission bits mean nothing to root. Raw calls change one thread only.
template <class Work>
void as_gem(Work work) {
    std::thread([&] {
        if (::geteuid() == 0) {
            ASSERT_EQ(::syscall(SYS_setgroups, 0, nullptr), 0);
            ASSERT_EQ(::syscall(SYS_setresgid, 1000, 1000, 1000), 0);
            ASSERT_EQ(::syscall(SYS_setresuid, 1000, 1000, 1000), 0);
        }
        work();
    }).join();
}

class WorkspaceTest : public ::testing::Test {
  protected:
    WorkspaceTest() {
        auto opened = open_user_workspace(
            directory_.path() + "/users", directory_.path() + "/skills", "alice"
        );
        EXPECT_TRUE(opened) << opened.error().message;
        workspace_ = *opened;
    }

    // Host paths of guest files.
    [[nodiscard]] std::string user_data(const std::string& rest) const {
        return workspace_->user_data_source() + "/" + rest;
    }
    [[nodiscard]] std::string skills(const std::string& rest) const {
        return workspace_->skills_source() + "/" + rest;
    }

    static void put(const std::string& host, const std::string& text) {
        std::ofstream(host, std::ios::binary) << text;
    }
    static std::string get(const std::string& host) {
        std::ifstream in(host, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    void make_directory(const std::string& rest) const { ::mkdir(user_data(rest).c_str(), 0700); }
    void link(const std::string& target, const std::string& rest) const {
        EXPECT_EQ(::symlink(target.c_str(), user_data(rest).c_str()), 0);
    }
    static unsigned mode_of(const std::string& host) {
        struct stat status{};
        return ::lstat(host.c_str(), &status) == 0 ? status.st_mode & 07777U : 0U;
    }
    static bool exists(const std::string& host) {
        struct stat status{};
        return ::lstat(host.c_str(), &status) == 0;
    }

    TemporaryDirectory directory_;
    std::shared_ptr<Workspace> workspace_;
};

}  // namespace ars::fsmount
