// `ars exec` is over in milliseconds, most of which its template takes to set itself up. So the
// program's entry (early_template.cpp) starts one before libc has even relocated this program, and
// whoever makes a sandbox takes it from here. One that nobody took ends with this process.
#pragma once

#include "base/fd.hpp"
#include "sandbox/launcher.hpp"

namespace ars::sandbox {

struct EarlyTemplate {
    ChildProcess process;
    base::Fd control;  // empty: none was started, or it was taken
};
// It gives its scopes networks of their own.
[[nodiscard]] EarlyTemplate take_early_template();

}  // namespace ars::sandbox
