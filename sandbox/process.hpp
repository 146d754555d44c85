// A command that was started: it goes on by itself in its scope, and whoever knows its id can look,
// feed it and end it.
#pragma once

#include "base/async.hpp"
#include "base/result.hpp"
#include "sandbox/command.hpp"

#include <cstdint>
#include <string>

namespace ars::sandbox {

// A piece of the merged output, in bytes as they came. A page that ends before the output does ends
// between two characters.
struct OutputPage {
    std::string bytes;
    std::uint64_t offset = 0;       // of the first byte
    std::uint64_t next_offset = 0;  // where the next page starts
    std::uint64_t total = 0;        // written so far
    std::uint64_t dropped = 0;      // asked for, but older than limits::kPolledOutputBytes
};

// Used on the scope's executor only. Works on, with what is known, after the scope is gone.
class Process {
  public:
    virtual ~Process() = default;
    [[nodiscard]] virtual const std::string& id() const = 0;       // "1", "2", ... within the scope
    [[nodiscard]] virtual const std::string& command() const = 0;  // for people, cut when long
    [[nodiscard]] virtual bool running() const = 0;
    // True when it is over, false when the deadline passed first. Cancelling ends the wait only.
    virtual base::Task<bool> wait(base::Deadline deadline) = 0;
    // How it ended. While it runs: `out`, `err` and `duration` so far, the rest means nothing.
    [[nodiscard]] virtual Outcome outcome() const = 0;
    [[nodiscard]] virtual OutputPage read(std::uint64_t offset, std::size_t max_bytes) const = 0;
    // Hands `bytes` to its stdin once the earlier ones are read. Errors: "input_closed" (it was
    // closed, never open, or the command is over), "input_full" (earlier input was not read before
    // the deadline; nothing was taken), "too_large" (over limits::kInputBytes).
    virtual base::Task<base::Result<void>> write(std::string bytes, base::Deadline deadline) = 0;
    // The end of its input, after what was written; on a terminal the end-of-file character.
    virtual void close_input() = 0;
    // Error "no_terminal".
    virtual base::Result<void> resize(TerminalSize size) = 0;
    // Reads on after `on_output` answered false.
    virtual void resume_output() = 0;
    // TERM, a grace, KILL, proof: returns when nothing it started is alive, also when it had ended
    // before and left processes. Not cancellable. Its outcome is then `cancelled`.
    virtual base::Task<void> kill() = 0;
};

}  // namespace ars::sandbox
