// `ars backup` and `ars restore`: the store as a whole. Users' files are theirs to copy.
#include "base/units.hpp"
#include "runtime/store/backup.hpp"
#include "sandbox/privileges.hpp"
#include "server/config.hpp"
#include "server/directories.hpp"
#include "server/options.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace ars::server {

namespace {

int fail_with(const char* who, const base::Error& error) {
    fmt::print(stderr, "{}: {}\n", who, error.message);
    return 1;
}

}  // namespace

int command_backup(const BackupOptions& options) {
    const char* const who = options.restore ? "ars restore" : "ars backup";
    std::string data = options.data;
    std::size_t max_size = Config{}.store.max_size;
    if (data.empty()) {
        LoadedConfig loaded;
        if (const int code = load_config_or_report(who, options.config, loaded); code != 0) {
            return code;
        }
        data = loaded.config.data_dir;
        max_size = loaded.config.store.max_size;
    }
    // As gem, like the server, so that neither leaves a file that the other can't open.
    const std::string& target = options.restore ? data : options.directory;
    if (auto made = make_own_directory(target); !made) {
        return fail_with(who, made.error());
    }
    if (auto dropped = sandbox::drop_to_gem(); !dropped) {
        return fail_with(who, dropped.error());
    }
    for (const std::string& directory : {data, options.directory}) {
        if (auto reachable = check_reachable(directory); !reachable) {
            return fail_with(who, reachable.error());
        }
    }
    const std::string store = data + "/store";
    const auto bytes = options.restore ? store::restore(options.directory, store, max_size)
                                       : store::back_up(store, options.directory);
    if (!bytes) {
        return fail_with(who, bytes.error());
    }
    fmt::print(
        "{} bytes {} {}\n",
        *bytes,
        options.restore ? "restored to" : "copied to",
        options.restore ? store : options.directory
    );
    return 0;
}

}  // namespace ars::server
