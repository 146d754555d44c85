// ars-scope-init: the small program that is carried inside ars and runs every scope. Started by the
// launcher as `ars-scope-init own|shared`, after the network of its scopes.
#include "sandbox/protocol.hpp"
#include "sandbox/scope_template.hpp"

#include <string_view>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char** argv) {
    using namespace ars::sandbox;
    ::umask(022);
    // Started by descriptor number, which would be its name in ps.
    ::prctl(PR_SET_NAME, "ars-template", 0, 0, 0);
    ::syscall(SYS_close_range, static_cast<unsigned>(kControlFd + 1), ~0U, 0);
    ::fcntl(kControlFd, F_SETFD, FD_CLOEXEC);
    run_template(argc > 1 && std::string_view(argv[1]) == kOwnNetwork);
}
