// All processes below one, remembered by pid and start time, to be looked for after its death.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include <sys/types.h>

namespace ars::tests {

// pid -> the kernel's start time of that process, so that a pid used again is not taken for it.
using Family = std::map<pid_t, std::string>;

// The process and everything below it.
Family family_of(pid_t root);
// What of it is still there after at most `limit`, zombies of other parents left out; "" when
// nothing is.
std::string left_of(const Family& family, std::chrono::milliseconds limit);

}  // namespace ars::tests
