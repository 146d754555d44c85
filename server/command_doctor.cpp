// `ars doctor`: what this host allows, which tier that gives, and what would give more.
#include "sandbox/host_probe.hpp"
#include "sandbox/privileges.hpp"
#include "server/options.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json/serialize.hpp>

#include <cstdio>
#include <exception>
#include <utility>

namespace ars::server {

int command_doctor(const DoctorOptions& options) {
    if (auto dropped = sandbox::drop_to_gem(); !dropped) {
        std::fprintf(stderr, "ars doctor: %s\n", dropped.error().message.c_str());
        return 1;
    }
    boost::asio::io_context io(1);
    sandbox::HostReport report;
    std::exception_ptr error;
    boost::asio::co_spawn(
        io,
        sandbox::probe_host(options.tier),
        [&](std::exception_ptr failure, sandbox::HostReport found) {
            error = failure;
            report = std::move(found);
        }
    );
    io.run();
    if (error) {
        std::rethrow_exception(error);
    }
    const bool no_ring =
        options.io == sandbox::IoBackend::io_uring && report.io_backend != "io_uring";
    if (options.io == sandbox::IoBackend::epoll) {
        report.io_backend = "epoll";
    }
    const std::string text =
        options.json ? boost::json::serialize(report.to_json()) + "\n" : report.to_text();
    std::fputs(text.c_str(), stdout);
    return report.tier == "none" || no_ring ? 1 : 0;
}

}  // namespace ars::server
