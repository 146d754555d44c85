// One line of `ars exec --batch`: what it asks for.
#pragma once

#include "base/deadline.hpp"
#include "base/result.hpp"
#include "sandbox/scope.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace ars::server {

// {"command": "sh text" | [argv], "timeout": "60s", "stdin": "..", "env": {..}, "raw": true,
//  "limits": {"cpu": "10s", "file_size": "1MiB", "open_files": 64, "processes": 16}}
// With "wait": "1s" it goes on when that time has passed, and can be asked for by its id; then
// "stdin_open": true and "terminal": {"rows": 24, "columns": 80} make sense too.
struct BatchRun {
    sandbox::Command command;
    std::optional<base::milliseconds> wait;
};
struct BatchPoll {  // {"poll": "1", "offset": 0, "wait": "5s"}: waits for its end at most so long
    std::string id;
    std::uint64_t offset = 0;
    base::milliseconds wait{0};
};
struct BatchInput {  // {"input": "1", "data": "..", "close": true}
    std::string id;
    std::string data;
    bool close = false;
};
struct BatchResize {  // {"resize": "1", "rows": 24, "columns": 80}
    std::string id;
    sandbox::TerminalSize size;
};
struct BatchKill {  // {"kill": "1"}
    std::string id;
};
struct BatchList {  // {"list": true}
    bool list = true;
};
using BatchLine = std::variant<BatchRun, BatchPoll, BatchInput, BatchResize, BatchKill, BatchList>;

// Error "bad_batch_line": every fault of the line. `timeout` holds for commands without their own.
[[nodiscard]] base::Result<BatchLine> parse_batch_line(
    std::string_view line,
    base::milliseconds timeout,
    const std::map<std::string, std::string>& environment
);

// A command in the workspace.
[[nodiscard]] sandbox::Command exec_command(
    std::vector<std::string> argv,
    base::milliseconds timeout,
    std::map<std::string, std::string> environment
);

}  // namespace ars::server
