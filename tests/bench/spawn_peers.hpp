// The peers that spawn_bench runs beside ours: each runs one program once and waits until its
// output is at its end and its status is reaped.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace ars::bench {

using Argv = std::vector<std::string>;

struct Peer {
    std::string name;
    std::function<bool(const Argv&)> run;  // false: it did not work
};

// vfork + exec, posix_spawn, and of bubblewrap, unshare(1), crun and runc those that are installed.
std::vector<Peer> find_peers();

}  // namespace ars::bench
