// A command's pseudo-terminal: made by the scope's init in the scope's own devpts, its master
// passed to the server. Init-side code: libc only.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"

#include <cstdint>

namespace ars::sandbox {

struct TerminalShape {
    std::uint32_t rows = 0;
    std::uint32_t columns = 0;
};

// In the init: makes a terminal, sends its master through `socket` and returns the slave.
[[nodiscard]] base::Result<base::Fd> open_terminal(TerminalShape shape, int socket);

// TIOCSWINSZ on either end; the kernel tells the foreground group with SIGWINCH.
[[nodiscard]] base::Result<void> set_terminal_size(int terminal, TerminalShape shape);

}  // namespace ars::sandbox
