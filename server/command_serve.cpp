// `ars serve`: from a configuration file to a listening server, and back down in order on SIGTERM.
#include "base/clock.hpp"
#include "base/start_pages.hpp"
#include "fsmount/layout.hpp"
#include "sandbox/cgroup.hpp"
#include "sandbox/host_probe.hpp"
#include "sandbox/privileges.hpp"
#include "server/app.hpp"
#include "server/config_files.hpp"
#include "server/directories.hpp"
#include "server/listener.hpp"
#include "server/options.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/signal_set.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace ars::server {

namespace {

using namespace std::chrono_literals;

// For answers under way, when the tools' time is over: with the default of that time and the kill
// limits the exit stays under ten seconds.
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

// Memory limits are the kernel's where the server's cgroup is delegated to it, and a watch's
// elsewhere. Before privileges are dropped. Nothing to do when no policy has one: the server would
// move every process of its cgroup for nothing.
sandbox::MakeCgroup delegated_cgroups(const Policies& policies) {
    bool wanted = false;
    for (const std::string& name : policies.names()) {
        const auto policy = policies.find(name);
        wanted = wanted || (policy && policy->memory != 0);
    }
    if (!wanted) {
        return nullptr;
    }
    const auto tree = sandbox::CgroupTree::prepare();
    if (!tree || (::geteuid() == 0 && !tree->hand_over(fsmount::kGemUid, fsmount::kGemGid))) {
        return nullptr;
    }
    return [tree = *tree](std::string_view name, std::uint64_t memory, std::uint32_t processes) {
        return tree.make(name, memory, processes);
    };
}

struct Serving {
    Serving(App& the_app, Api& the_api, Listener& the_listener)
        : app(the_app),
          api(the_api),
          listener(the_listener),
          shut_down(the_app.io().get_executor()) {}

    App& app;
    Api& api;
    Listener& listener;
    base::Notifier shut_down;
    bool stopping = false;
    bool is_shut_down = false;
    int exit_code = 0;
};

// No new runs and no new model calls from here on, while tools end and requests are answered; then
// no connections.
base::Task<void> stop(Serving* serving, int exit_code) {
    if (serving->stopping) {
        co_return;
    }
    serving->stopping = true;
    serving->exit_code = exit_code;
    co_await serving->app.runs().drain(serving->app.config().config.runs.stop_grace);
    serving->listener.stop(kStopGrace);
    co_await serving->app.shutdown();
    serving->is_shut_down = true;
    serving->shut_down.notify_all();
}

// What the host gives is found out by doing it, while health already answers and submissions wait.
// 0, or the exit code with the reason on stderr.
base::Task<int> make_ready(Serving* serving) {
    const sandbox::HostReport report = co_await sandbox::probe_host();
    const SandboxConfig& wanted = serving->app.config().config.sandbox;
    const bool landlock = report.tier == "landlock";
    const bool less =
        report.tier == "none" || (landlock && wanted.require != sandbox::Tier::landlock);
    if (less || (wanted.require_fresh_proc && report.proc != "fresh")) {
        std::fprintf(
            stderr,
            "%sars serve: this host gives less than sandbox.require%s asks for; the lines marked "
            "-> "
            "say what helps\n",
            report.to_text().c_str(),
            less ? "" : "_fresh_proc"
        );
        co_return kExitUsage;
    }
    if (landlock) {
        if (auto entered = serving->app.enter_landlock_tier(); !entered) {
            std::fprintf(stderr, "ars serve: %s\n", entered.error().message.c_str());
            co_return kExitUsage;
        }
    }
    serving->api.sandbox_tier = report.tier;
    const base::Result<void> recovered = co_await serving->app.runs().recover();
    if (!recovered) {
        std::fprintf(
            stderr, "ars serve: runs can't be taken over: %s\n", recovered.error().message.c_str()
        );
        co_return 1;
    }
    serving->app.start_webhooks();
    serving->app.start_retention();
    serving->app.attachments().start();
    serving->app.start_people();
    base::let_go_of_start_pages();
    co_return 0;
}

base::Task<void> begin(Serving* serving) {
    if (const int code = co_await make_ready(serving); code != 0) {
        co_await stop(serving, code);
    }
}

base::Task<void> serve_until_stopped(Serving* serving) {
    co_await serving->listener.serve();
    while (!serving->is_shut_down) {
        co_await serving->shut_down.wait(base::Deadline::never()
        );  // the tools' kill limits bound it
    }
    serving->app.io().stop();
}

void rethrow(std::exception_ptr error) {
    if (error) {
        std::rethrow_exception(error);
    }
}

// The answer is in the log, and at GET /api/system/reload.
base::Task<void> reload_on_signal(Serving* serving) {
    base::asio::signal_set signals(serving->app.io(), SIGHUP);
    while (!serving->stopping) {
        co_await signals.async_wait(base::asio::use_awaitable);
        const auto report = co_await serving->app.reloader().reload({});
        (void)report;
    }
}

// Who asks twice doesn't want to wait: nothing on disk needs it, and scopes end with the server.
base::Task<void> stop_on_signal(Serving* serving) {
    base::asio::signal_set signals(serving->app.io(), SIGTERM, SIGINT);
    co_await signals.async_wait(base::asio::use_awaitable);
    serving->app.log().info("stopping");
    base::asio::co_spawn(serving->app.io(), stop(serving, 0), rethrow);
    const int second = co_await signals.async_wait(base::asio::use_awaitable);
    serving->app.log().warning("stopped_at_once");
    std::_Exit(128 + second);
}

}  // namespace

int command_serve(const ServeOptions& options) {
    // Until there is a loop that takes it: what it asks for is being read anyway.
    std::signal(SIGHUP, SIG_IGN);
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
    const std::string data = options.data.empty() ? std::string() : absolute_path(options.data);
    AppOptions app_options;
    app_options.io = options.io;
    app_options.webhooks = true;
    app_options.data_dir = data.empty() ? config.config.data_dir : data;
    app_options.users_dir = data.empty() ? config.config.mounts.users : data + "/users";
    if (auto made = make_directories(app_options.data_dir, app_options.users_dir); !made) {
        return fail_start(made.error());
    }
    app_options.cgroups = delegated_cgroups(config.policies);
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
    const Authenticator authenticator(app.people(), address->host);
    HttpStats stats;
    HttpLimits limits;
    limits.heartbeat = app.config().config.server.heartbeat;
    limits.read_timeout = app.config().config.server.read_timeout;
    limits.write_timeout = app.config().config.server.write_timeout;
    Api api{
        app.runs(),
        app.agents().table(),
        app.agents(),
        known_names(app.config()),
        app.reloader(),
        app.people(),
        authenticator,
        app.log(),
        stats,
        ARS_VERSION,
        "probing",
        app.sandbox().backend(),
        base::now_ms(),
        app.file_access(),
        app.attachments(),
        limits,
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
         {"agents", app.agents().table().list(local, true).size()},
         {"child_io", app.sandbox().backend()},
         {"pid", ::getpid()}}
    );
    Serving serving(app, api, **listener);
    for (auto part : {&begin, &serve_until_stopped, &stop_on_signal, &reload_on_signal}) {
        base::asio::co_spawn(app.io(), part(&serving), rethrow);
    }
    app.io().run();
    app.log().info("stopped");
    return serving.exit_code;
}

}  // namespace ars::server
