// Expected failure as a value: a kind (what a caller may do about it), a stable code (what a
// program switches on) and a sentence (what a person reads). Broken worlds throw; see
// ARCHITECTURE.md.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace ars::base {

enum class ErrorKind : std::uint8_t {
    invalid,       // the caller's input is wrong: 422, exit 2
    unauthorized,  // no valid key: 401
    forbidden,     // known caller, not allowed: 403
    not_found,     // missing, or not the caller's: 404
    conflict,      // the state forbids it now: 409
    too_large,     // over a stated bound: 413
    exhausted,     // a pool or rate is full, try later: 429
    timeout,       // a deadline passed: 504
    cancelled,     // somebody asked to stop
    unavailable,   // a part we depend on is down: 503
    io,            // the kernel or the disk refused
    internal,      // our own fault: 500
};

struct Error {
    ErrorKind kind = ErrorKind::internal;
    std::string code;     // snake_case, part of the outer surface: "path_escape", "run_busy"
    std::string message;  // what failed, where, and what to do
    int sys_errno = 0;    // the errno behind an `io` error, 0 otherwise
};

template <class T>
using Result = std::expected<T, Error>;

[[nodiscard]] inline std::unexpected<Error> fail(
    ErrorKind kind, std::string code, std::string message
) {
    return std::unexpected(Error{kind, std::move(code), std::move(message)});
}

// The failure of a system call. `what` names call and object: "openat2 /home/gem/user-data/x".
[[nodiscard]] Error errno_error(std::string code, std::string_view what, int sys_errno);
[[nodiscard]] inline std::unexpected<Error> fail_errno(
    std::string code, std::string_view what, int sys_errno
) {
    return std::unexpected(errno_error(std::move(code), what, sys_errno));
}

}  // namespace ars::base
