// ars-scope-init: the small program that is carried inside ars and runs every scope. Started by the
// launcher as `ars-scope-init own|shared`, after the network of its scopes, or, where namespaces
// are refused, as `ars-scope-init landlock` for each scope.
#include "sandbox/landlock_scope.hpp"
#include "sandbox/protocol.hpp"
#include "sandbox/scope_template.hpp"

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <fcntl.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// In the place of libstdc++'s, which can print what was thrown and brings a demangler for it.
namespace __gnu_cxx {
[[noreturn]] void __verbose_terminate_handler();
void __verbose_terminate_handler() { std::abort(); }
}  // namespace __gnu_cxx

namespace {

// For every tool that will ever be started from here: posix_spawn leaves libc's own two signals
// ignored, and sigaction() does not touch them.
void default_signals() {
    struct {
        void* handler;
        unsigned long flags;
        void* restorer;
        unsigned long mask;
    } plain{};  // the kernel's own form
    for (int signal = 1; signal <= 64; ++signal) {
        ::syscall(SYS_rt_sigaction, signal, &plain, nullptr, sizeof plain.mask);
    }
}

// A fork leaves pages of files to be found again by the child, a fault at a time, unless the
// mapping has a page of its own: then it copies the table, which is ten times cheaper. So one byte
// of our text is written over with itself. Where the kernel refuses that nothing is lost.
void keep_text_over_forks() {
    const int memory = ::open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    const auto at = reinterpret_cast<std::uintptr_t>(&keep_text_over_forks);
    char byte = 0;
    if (::pread(memory, &byte, 1, static_cast<off_t>(at)) == 1) {
        (void)!::pwrite(memory, &byte, 1, static_cast<off_t>(at));
    }
    ::close(memory);
}

}  // namespace

int main(int argc, char** argv) {
    using namespace ars::sandbox;
    default_signals();
    ::umask(022);
    // Started by descriptor number, which would be its name in ps.
    ::prctl(PR_SET_NAME, "ars-template", 0, 0, 0);
    ::syscall(SYS_close_range, static_cast<unsigned>(kControlFd + 1), ~0U, 0);
    ::fcntl(kControlFd, F_SETFD, FD_CLOEXEC);
    if (argc > 1 && std::string_view(argv[1]) == kSupervisor) {
        run_landlock_scope();
    }
    ::mallopt(M_ARENA_MAX, 1);  // a fork copies every mapping
    keep_text_over_forks();
    run_template(argc > 1 && std::string_view(argv[1]) == kOwnNetwork);
}
