// What an operator can do about a failed step of a scope's set-up.
#include "sandbox/launcher.hpp"

#include <cerrno>

namespace ars::sandbox {

std::string setup_remedy(const std::string& step, int error) {
    if (step == "user_namespace") {
        if (error == ENOSPC) {
            return "Raise the sysctl user.max_user_namespaces";
        }
        return "User namespaces are refused here. In Docker: --security-opt seccomp=<the profile "
               "in images/>, or "
               "seccomp=unconfined; on Ubuntu 24.04 hosts: an AppArmor profile with `userns`, or "
               "sysctl "
               "kernel.apparmor_restrict_unprivileged_userns=0; in Kubernetes: a Localhost seccomp "
               "profile";
    }
    if (step == "mount_namespace" || step == "network" || step == "pid_namespace") {
        return "The engine's seccomp profile or AppArmor refuses namespaces: use the profile in "
               "images/";
    }
    if (step == "new_root" || step == "image" || step == "mounts" || step == "seal_root") {
        if (error == EPERM || error == EACCES) {
            return "Mounting is refused: use the seccomp profile in images/ and --security-opt "
                   "apparmor=unconfined (or a profile that allows mount and pivot_root)";
        }
        if (error == ENOSYS) {
            return "Linux 5.12 or newer is needed";
        }
    }
    if (step == "landlock" || step == "landlock_signals") {
        return "Landlock ABI 6 is needed: Linux 6.12 or newer, booted with lsm=landlock,..., and a "
               "seccomp profile that allows landlock_*";
    }
    if (step == "private_tmp") {
        return "/tmp must be writable: mount an emptyDir or a tmpfs there";
    }
    if ((step == "open_sources" || step == "image") && error == EACCES) {
        return "uid 1000 must be able to reach this path (x on every directory above it)";
    }
    return {};
}

}  // namespace ars::sandbox
