// What this host lets us do, found out by doing it, each thing under a deadline. A sysctl or a
// version says little: profiles, LSMs and engines refuse what kernels offer.
#pragma once

#include "base/async.hpp"
#include "sandbox/policy.hpp"

#include <boost/json/object.hpp>

#include <optional>
#include <string>
#include <vector>

namespace ars::sandbox {

struct Probe {
    std::string name;  // "user_namespace", "fresh_proc", "io_uring", ...
    bool works = false;
    int error = 0;       // errno of the failure, 0 when unknown
    std::string detail;  // what was found, or what failed
    std::string remedy;  // what would make it work; empty when it works
};

struct HostReport {
    std::vector<Probe> probes;
    std::string tier;                       // "namespaces", "landlock" or "none"
    std::string io_backend;                 // "io_uring" or "epoll"
    std::string proc;                       // "fresh" or "outer"; empty without the namespaces tier
    std::vector<std::string> not_promised;  // of this tier, on this host

    [[nodiscard]] boost::json::object to_json() const;
    [[nodiscard]] std::string to_text() const;
};

// Makes one real scope (over the image's own /usr) of the best tier that works, or of `only`, and
// tries the rest in this process. Call it with the identity that will run tools, after root was
// dropped.
base::Task<HostReport> probe_host(std::optional<Tier> only = {});

// The best tier that works, by making one scope; the first one when none does, whose failure then
// comes up where a scope is needed. May be called before root is dropped.
base::Task<Tier> best_tier();

}  // namespace ars::sandbox
