// The entry of the one binary: parse the command line and dispatch. The last of the three places
// that catch exceptions.
#include "server/options.hpp"

#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <variant>

#include <sys/resource.h>

namespace {

struct Dispatch {
    int operator()(const ars::server::ServeOptions& o) const {
        return ars::server::command_serve(o);
    }
    int operator()(const ars::server::RunOptions& o) const { return ars::server::command_run(o); }
    int operator()(const ars::server::ExecOptions& o) const { return ars::server::command_exec(o); }
    int operator()(const ars::server::ToolOptions& o) const { return ars::server::command_tool(o); }
    int operator()(const ars::server::DoctorOptions& o) const {
        return ars::server::command_doctor(o);
    }
    int operator()(const ars::server::CheckOptions& o) const {
        return ars::server::command_check(o);
    }
    int operator()(const ars::server::BackupOptions& o) const {
        return ars::server::command_backup(o);
    }
    int operator()(const ars::server::VersionOptions&) const {
        return ars::server::command_version();
    }
};

}  // namespace

int main(int argc, char** argv) {
    // A peer that goes away is an error of that one write, and an inherited "ignore" of SIGCHLD
    // would make children vanish before they are reaped.
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGCHLD, SIG_DFL);
    // The soft limit is often 1024, for the sake of select(). We need more, and the kernel holds it
    // against all descriptors in flight of our user: tools that are allowed more could stop us.
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)::setrlimit(RLIMIT_NOFILE, &files);
    }
    try {
        const ars::server::ParsedOptions parsed = ars::server::parse_options(argc, argv);
        if (!parsed.options) {
            std::fputs(parsed.text.c_str(), parsed.exit_code == 0 ? stdout : stderr);
            return parsed.exit_code;
        }
        return std::visit(Dispatch{}, *parsed.options);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "ars: unexpected error: %s\n", error.what());
        return 1;
    }
}
