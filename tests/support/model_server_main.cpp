// The test model server as a program, for tests that start real processes:
//   model_server --port 0 --script FILE.json [--key KEY]
// Its first line on stdout is the port. It runs until SIGTERM or SIGINT. GET /requests on the same
// port tells what it was asked: {"count", "faults", "hang_ups", "requests"}. See model_script.hpp
// for the script.
#include "base/fd.hpp"
#include "base/limits.hpp"
#include "tests/support/model_script.hpp"
#include "tests/support/model_server.hpp"

#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>

namespace {

int run(int argc, char** argv) {
    ars::tests::ModelServer::Options options;
    std::string script;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string name = argv[i];
        if (name == "--port") {
            options.port = static_cast<std::uint16_t>(std::stoi(argv[i + 1]));
        } else if (name == "--script") {
            script = argv[i + 1];
        } else if (name == "--key") {
            options.api_key = argv[i + 1];
        } else {
            script.clear();
            break;
        }
    }
    if (script.empty()) {
        std::fputs("usage: model_server --port PORT --script FILE.json [--key KEY]\n", stderr);
        return 2;
    }
    const auto text = ars::base::read_file(script, ars::base::limits::kConfigFileBytes);
    if (!text) {
        std::fprintf(stderr, "%s\n", text.error().message.c_str());
        return 2;
    }
    // Blocked before the server makes its threads, so that they inherit it and sigwait gets the
    // signal.
    sigset_t stop;
    ::sigemptyset(&stop);
    ::sigaddset(&stop, SIGTERM);
    ::sigaddset(&stop, SIGINT);
    ::pthread_sigmask(SIG_BLOCK, &stop, nullptr);
    const ars::tests::ModelServer server(options, ars::tests::handler_of_script(*text));
    std::printf("%u\n", static_cast<unsigned>(server.port()));
    std::fflush(stdout);
    int signal = 0;
    ::sigwait(&stop, &signal);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "model_server: %s\n", error.what());
        return 2;
    }
}
