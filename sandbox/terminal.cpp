#include "sandbox/terminal.hpp"

#include "sandbox/protocol.hpp"

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <sys/ioctl.h>

namespace ars::sandbox {

base::Result<base::Fd> open_terminal(TerminalShape shape, int socket) {
    // In a scope's /dev this is a link to the ptmx of its own devpts.
    const base::Fd master(::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
    if (!master) {
        return base::fail_errno("terminal_failed", "open /dev/ptmx", errno);
    }
    int locked = 0;
    if (::ioctl(master.get(), TIOCSPTLCK, &locked) != 0) {
        return base::fail_errno("terminal_failed", "TIOCSPTLCK", errno);
    }
    // By descriptor: needs no path, which a tool could have changed.
    base::Fd slave(::ioctl(master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (!slave) {
        return base::fail_errno("terminal_failed", "TIOCGPTPEER", errno);
    }
    if (auto sized = set_terminal_size(master.get(), shape); !sized) {
        return std::unexpected(sized.error());
    }
    const std::array<int, 1> passed{master.get()};
    if (const int error = send_message(socket, {}, {}, passed); error != 0) {
        return base::fail_errno("terminal_failed", "send the terminal", error);
    }
    return slave;
}

base::Result<void> set_terminal_size(int terminal, TerminalShape shape) {
    winsize size{};
    size.ws_row = static_cast<unsigned short>(shape.rows);
    size.ws_col = static_cast<unsigned short>(shape.columns);
    if (::ioctl(terminal, TIOCSWINSZ, &size) != 0) {
        return base::fail_errno("terminal_failed", "TIOCSWINSZ", errno);
    }
    return {};
}

}  // namespace ars::sandbox
