// `ars serve`: from a configuration file to a listening server, and back down in order on SIGTERM.
#include "base/clock.hpp"
#include "sandbox/privileges.hpp"
#include "server/app.hpp"
#include "server/directories.hpp"
#include "server/listener.hpp"
#include "server/options.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/signal_set.hpp>

#include <csignal>
#include <cstdio>

namespace ars::server {

namespace {

using namespace std::chrono_literals;

// What is not done after this is cut: with the tools' own kill limits the exit stays under ten
// seconds.
constexpr auto kStopGrace = 3s;

int fail_start(const base::Error& error) {
    std::fprintf(stderr, "ars serve: %s\n", error.message.c_str());
    return kExitUsage;
}

base::Result<void> make_directories(const std::string& data_dir, const std::string& users_dir) {
    for (const std::string& path : {data_dir, data_dir + "/skills", users_dir}) {
        if (auto made = make_own_directory(path); !made) {
            return made;
        }
    }
    return {};
}

base::Task<void> stop_on_signal(App* app, Listener* listener) {
    base::asio::signal_set signals(app->io(), SIGTERM, SIGINT);
    co_await signals.async_wait(base::asio::use_awaitable);
    app->log().info("stopping");
    listener->stop(kStopGrace);
    co_await app->shutdown();
}

base::Task<void> recover(App* app) {
    const base::Result<void> recovered = co_await app->runs().recover();
    if (!recovered) {
        app->log().error("recovery_failed", {{"error", recovered.error().message}});
        std::raise(SIGTERM);
    }
}

}  // namespace

int command_serve(const ServeOptions& options) {
    LoadedConfig config;
    if (const int code = load_config_or_report("ars serve", options.config, config); code != 0) {
        return code;
    }
    const std::string listen =
        options.listen.empty() ? config.config.server.listen : options.listen;
    if (auto allowed = check_listen(listen, !config.keys.empty()); !allowed) {
        return fail_start(allowed.error());
    }
    const auto address = parse_listen_address(listen);
    if (!address) {
        return fail_start(address.error());
    }
    AppOptions app_options;
    app_options.data_dir = options.data.empty() ? config.config.data_dir : options.data;
    app_options.users_dir =
        options.data.empty() ? config.config.mounts.users : options.data + "/users";
    if (auto made = make_directories(app_options.data_dir, app_options.users_dir); !made) {
        return fail_start(made.error());
    }
    if (auto dropped = sandbox::drop_to_gem(); !dropped) {
        return fail_start(dropped.error());
    }
    for (const std::string& path : {app_options.data_dir, app_options.users_dir}) {
        if (auto reachable = check_reachable(path); !reachable) {
            return fail_start(reachable.error());
        }
    }
    auto built = App::build(std::move(config), std::move(app_options));
    if (!built) {
        return fail_start(built.error());
    }
    App& app = **built;
    const agents::User local = app.config().local_user();
    const Authenticator authenticator(app.config().keys, local, address->host);
    HttpStats stats;
    Api api{
        app.runs(),
        app.config().agents,
        authenticator,
        app.log(),
        stats,
        ARS_VERSION,
        "namespaces",
        base::now_ms(),
        HttpLimits{},
    };
    Router router(api);
    add_routes(router);
    auto listener = Listener::open(app.io().get_executor(), *address, api, router);
    if (!listener) {
        return fail_start(listener.error());
    }
    app.log().info(
        "listening",
        {{"address", address->host},
         {"port", (*listener)->port()},
         {"agents", app.config().agents.list(local, true).size()},
         {"child_io", app.sandbox().backend()},
         {"pid", ::getpid()}}
    );
    base::asio::co_spawn(app.io(), recover(&app), [](std::exception_ptr) {});
    base::asio::co_spawn(app.io(), stop_on_signal(&app, listener->get()), [](std::exception_ptr) {
    });
    base::asio::co_spawn(app.io(), (*listener)->serve(), [](std::exception_ptr) {});
    app.io().run();
    app.log().info("stopped");
    return 0;
}

}  // namespace ars::server
