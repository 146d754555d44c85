#include "sandbox/host_probe.hpp"

#include "base/digest.hpp"
#include "base/fd.hpp"
#include "sandbox/call_probes.hpp"
#include "sandbox/launcher.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <unistd.h>

namespace ars::sandbox {

namespace {

using namespace std::chrono_literals;

constexpr auto kProbeLimit = 1s;

// A scope of the least that shows every primitive; nothing is run in it.
ScopeSpec probe_spec() {
    ScopeSpec spec;
    const auto add = [&spec](fsmount::MountKind kind, const char* guest, const char* source) {
        fsmount::Mount mount;
        mount.kind = kind;
        mount.guest = guest;
        mount.source = source;
        spec.mounts.mounts.push_back(std::move(mount));
    };
    add(fsmount::MountKind::bind, "/usr", "/usr");
    add(fsmount::MountKind::proc, "/proc", "");
    add(fsmount::MountKind::directory, "/dev", "");
    add(fsmount::MountKind::devpts, "/dev/pts", "");
    add(fsmount::MountKind::device, "/dev/null", "/dev/null");
    add(fsmount::MountKind::tmpfs, "/tmp", "");
    return spec;
}

ScopeSpec landlock_probe_spec() {
    ScopeSpec spec;
    spec.tier = Tier::landlock;
    spec.access.rules = {
        {fsmount::Access::run, "/usr"},
        {fsmount::Access::read, "/proc"},
        {fsmount::Access::device, "/dev/null"},
    };
    spec.access.private_tmp = "/tmp/ars-scope-" + base::random_uuid();
    spec.access.rules.push_back({fsmount::Access::write, spec.access.private_tmp});
    return spec;
}

struct StepGroup {
    const char* name;
    const char* shows;
    std::vector<const char*> steps;  // of scope_init, in their order
};
const std::vector<StepGroup>& step_groups() {
    static const std::vector<StepGroup> groups{
        {"user_namespace",
         "uid and gid maps written",
         {"drop_root", "open_host_proc", "user_namespace"}},
        {"namespaces",
         "mount, pid, net with lo up, ipc, uts, cgroup",
         {"mount_namespace", "network", "pid_namespace"}},
        {"mounts",
         "tmpfs, recursive read-only bind, devpts, pivot_root",
         {"new_root", "image", "open_sources", "mounts", "seal_root", "open_proc"}},
        {"seccomp",
         "filter attached under no_new_privs",
         {"hostname",
          "proxy_listener",
          "limits",
          "capabilities",
          "no_new_privileges",
          "landlock",
          "not_dumpable",
          "die_with_server",
          "seccomp"}},
    };
    return groups;
}

// "scope set-up failed at step mounts: ..." -> "mounts"
std::string failed_step(const std::string& message) {
    constexpr std::string_view kBefore = " at step ";
    const std::size_t at = message.find(kBefore);
    if (at == std::string::npos) {
        return {};
    }
    const std::size_t start = at + kBefore.size();
    return message.substr(start, message.find(':', start) - start);
}

// Everything before the failed step worked, the rest was not reached.
void add_failed_steps(HostReport& report, const base::Error& error) {
    const std::string step = failed_step(error.message);
    bool failed = false;
    for (const StepGroup& group : step_groups()) {
        Probe probe;
        probe.name = group.name;
        const bool here =
            !failed && (step.empty() || std::find(group.steps.begin(), group.steps.end(), step) !=
                                            group.steps.end());
        if (here) {
            probe.error = error.sys_errno;
            probe.detail = error.message;
            probe.remedy = setup_remedy(step, error.sys_errno);
        } else {
            probe.works = !failed;
            probe.detail = failed ? "not reached" : group.shows;
        }
        failed = failed || here;
        report.probes.push_back(std::move(probe));
    }
}

void add_scope(HostReport& report, const base::Result<LaunchedScope>& launched) {
    if (!launched) {
        add_failed_steps(report, launched.error());
        return;
    }
    report.tier = "namespaces";
    report.proc = launched->fresh_proc ? "fresh" : "outer";
    for (const StepGroup& group : step_groups()) {
        report.probes.push_back({group.name, true, 0, group.shows, {}});
    }
    Probe proc;
    proc.name = "fresh_proc";
    proc.works = launched->fresh_proc;
    if (proc.works) {
        proc.detail = "each scope has its own /proc";
    } else {
        proc.error = EPERM;
        proc.detail = "the engine masks parts of /proc, so scopes see the container's, read-only";
        proc.remedy =
            "--security-opt unmask=ALL (podman), or --security-opt systempaths=unconfined (docker)";
    }
    report.probes.push_back(std::move(proc));
}

// Made and ended at once. The short limit guards against a mount that never answers; a machine that
// is only busy gets the time that any scope gets.
base::Task<base::Result<LaunchedScope>> try_scope(Launcher& launcher, ScopeSpec spec) {
    auto launched = co_await launcher.launch(spec, base::Deadline::after(kProbeLimit));
    if (!launched && launched.error().kind == base::ErrorKind::timeout) {
        launched = co_await launcher.launch(
            std::move(spec), base::Deadline::after(base::limits::kScopeSetUp)
        );
    }
    if (launched) {
        launched->end();
        co_await launched->init.wait_end(base::Deadline::after(kProbeLimit));
    }
    co_return launched;
}

void add_landlock_scope(HostReport& report, const base::Result<LaunchedScope>& launched) {
    Probe probe{"landlock_scope", launched.has_value(), 0, "files, signals, sockets behind it", {}};
    if (!launched) {
        probe.error = launched.error().sys_errno;
        probe.detail = launched.error().message;
        probe.remedy = setup_remedy(failed_step(probe.detail), probe.error);
    } else if (report.tier == "none") {
        report.tier = "landlock";
        report.proc = "outer";
    }
    report.probes.push_back(std::move(probe));
}

// What the namespaces tier has and Landlock can't give.
constexpr const char* kLandlockGaps[] = {
    "one user only: the workspace is the real /home/gem/user-data, nothing can be mounted there",
    "no private /tmp: TMPDIR and HOME are a directory of the scope's own, /tmp itself is closed",
    "/dev/shm is shared by all scopes and the container (C67), and so is System V and POSIX ipc",
    "argument lists, mounts and sockets of all processes of the container can be read in /proc",
    "names, sizes and owners of files are not hidden, and modes and times of gem's own can be "
    "changed; a directory that holds something hidden, such as /, can't be listed",
    "unix sockets with a path name can be connected to when gem may",
    "no network for tools but unix sockets, not even loopback, unless the policy says host; no "
    "allow-lists",
    "the process limit counts all processes of the uid: a scope gets its number on top of what "
    "runs "
    "when it is made",
};

std::string padded(std::string text, std::size_t width) {
    text.resize(std::max(width, text.size() + 1), ' ');
    return text;
}

}  // namespace

base::Task<HostReport> probe_host(std::optional<Tier> only) {
    HostReport report;
    report.tier = "none";
    Launcher launcher;
    if (only != Tier::landlock) {
        const auto launched = co_await try_scope(launcher, probe_spec());
        add_scope(report, launched);
        if (launched && !launched->names_denied_calls) {
            report.not_promised.emplace_back(
                "violations: errno only (no seccomp listener), an outcome can't name the call"
            );
        }
    }
    if (only != Tier::namespaces) {
        add_landlock_scope(report, co_await try_scope(launcher, landlock_probe_spec()));
    }
    bool cgroups = false;
    for (Probe& probe : co_await probe_calls(base::Deadline::after(kProbeLimit))) {
        if (probe.name == "io_uring") {
            report.io_backend = probe.works ? "io_uring" : "epoll";
        }
        cgroups = cgroups || (probe.name == "cgroup" && probe.works);
        report.probes.push_back(std::move(probe));
    }
    if (report.tier == "none") {
        report.not_promised.emplace_back("no tool runs on this host");
        co_return report;
    }
    if (report.tier == "landlock") {
        report.not_promised.insert(
            report.not_promised.end(), std::begin(kLandlockGaps), std::end(kLandlockGaps)
        );
        if (::access("/dev/ptmx", R_OK | W_OK) != 0) {
            report.not_promised.emplace_back(
                "no terminals: /dev/ptmx is closed to gem; mount devpts with ptmxmode=0666"
            );
        }
    } else if (report.proc == "outer") {
        report.not_promised.emplace_back(
            "tools can read argument lists, mounts and sockets of all processes of the container"
        );
    }
    report.not_promised.push_back(
        std::string(cgroups ? "outside ars serve " : "") +
        "a policy's memory limit is a watch of the tools' processes, 10 times a second: bound the "
        "container's memory too"
    );
    co_return report;
}

base::Task<Tier> best_tier() {
    Launcher launcher;
    const auto namespaces = co_await try_scope(launcher, probe_spec());
    if (namespaces) {
        co_return Tier::namespaces;
    }
    const auto landlock = co_await try_scope(launcher, landlock_probe_spec());
    co_return landlock ? Tier::landlock : Tier::namespaces;
}

boost::json::object HostReport::to_json() const {
    boost::json::array list;
    for (const Probe& probe : probes) {
        boost::json::object entry{
            {"name", probe.name}, {"works", probe.works}, {"detail", probe.detail}
        };
        if (probe.error != 0) {
            entry["errno"] = probe.error;
            entry["error"] = std::strerror(probe.error);
        }
        if (!probe.remedy.empty()) {
            entry["remedy"] = probe.remedy;
        }
        list.push_back(std::move(entry));
    }
    boost::json::array gaps;
    for (const std::string& gap : not_promised) {
        gaps.push_back(boost::json::string(gap));
    }
    boost::json::object json{
        {"tier", tier},
        {"io_backend", io_backend},
        {"probes", std::move(list)},
        {"not_promised", std::move(gaps)}
    };
    if (!proc.empty()) {
        json["proc"] = proc;
    }
    return json;
}

std::string HostReport::to_text() const {
    std::string text;
    for (const Probe& probe : probes) {
        text +=
            padded(probe.name, 16) + padded(probe.works ? "yes" : "no", 5) + probe.detail + "\n";
        if (!probe.remedy.empty()) {
            text += padded("", 21) + "-> " + probe.remedy + "\n";
        }
    }
    text += "\n" + padded("tier", 16) + tier + "\n" + padded("child I/O", 16) + io_backend + "\n";
    if (!proc.empty()) {
        text += padded("proc", 16) + proc + "\n";
    }
    for (const std::string& gap : not_promised) {
        text += padded("not promised", 16) + gap + "\n";
    }
    return text;
}

}  // namespace ars::sandbox
