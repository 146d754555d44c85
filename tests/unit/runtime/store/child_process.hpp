// A second process with a store, which a test may kill: the test program runs itself with a role.
#pragma once

#include "base/fd.hpp"

#include <string>

namespace ars::store {

// What `store_tests --child ROLE DIRECTORY` does; see main_test.cpp.
int run_child(const std::string& role, const std::string& directory);

// Kills and reaps the process at the latest in its destructor.
class ChildProcess {
  public:
    ChildProcess(const std::string& role, const std::string& directory);
    ChildProcess(const ChildProcess&) = delete;
    ChildProcess& operator=(const ChildProcess&) = delete;
    ~ChildProcess();

    // The next line of its output, without the line end; empty at its end.
    std::string read_line();
    void kill();
    // The exit code, or -signal.
    int wait();

  private:
    int pid_ = -1;
    int status_ = 0;
    base::Fd output_;
    std::string buffer_;
};

}  // namespace ars::store
