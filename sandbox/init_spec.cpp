#include "sandbox/init_spec.hpp"

#include "sandbox/packing.hpp"

namespace ars::sandbox {

std::string encode_spec(const InitSpec& spec) {
    Writer out;
    out.text(spec.hostname);
    out.number(spec.own_network ? 1 : 0);
    out.number(spec.proxy_listener ? 1 : 0);
    out.number(spec.processes);
    out.number(spec.file_size);
    out.number(spec.open_files);
    out.number(spec.cpu_seconds);
    out.number(spec.memory);
    out.text(spec.seccomp);
    out.number(spec.mounts.size());
    for (const fsmount::Mount& mount : spec.mounts) {
        out.number(static_cast<std::uint64_t>(mount.kind));
        out.text(mount.guest);
        out.text(mount.source);
        out.number(mount.fd ? 1 : 0);
        out.number(mount.read_only ? 1 : 0);
        out.number(mount.no_exec ? 1 : 0);
        out.number(mount.size_bytes);
        out.number(mount.inodes);
        out.number(mount.mode);
    }
    out.number(spec.access.size());
    for (const fsmount::AccessRule& rule : spec.access) {
        out.number(static_cast<std::uint64_t>(rule.access));
        out.text(rule.path);
        out.number(rule.required ? 1 : 0);
    }
    out.text(spec.private_tmp);
    return out.take();
}

base::Result<InitSpec> decode_spec(std::string_view bytes, std::vector<base::Fd> fds) {
    Reader in(bytes);
    InitSpec spec;
    spec.hostname = in.text();
    spec.own_network = in.number() != 0;
    spec.proxy_listener = in.number() != 0;
    spec.processes = static_cast<std::uint32_t>(in.number());
    spec.file_size = in.number();
    spec.open_files = static_cast<std::uint32_t>(in.number());
    spec.cpu_seconds = in.number();
    spec.memory = in.number();
    spec.seccomp = in.text();
    const std::uint64_t count = in.number();
    std::size_t next_fd = 0;
    for (std::uint64_t i = 0; i < count && in.ok(); ++i) {
        fsmount::Mount mount;
        mount.kind = static_cast<fsmount::MountKind>(in.number());
        mount.guest = in.text();
        mount.source = in.text();
        const bool has_fd = in.number() != 0;
        mount.read_only = in.number() != 0;
        mount.no_exec = in.number() != 0;
        mount.size_bytes = in.number();
        mount.inodes = in.number();
        mount.mode = static_cast<unsigned>(in.number());
        if (has_fd) {
            if (next_fd >= fds.size()) {
                return base::fail(
                    base::ErrorKind::internal, "bad_spec", "a detached mount did not arrive"
                );
            }
            mount.fd = std::make_shared<base::Fd>(std::move(fds[next_fd++]));
        }
        spec.mounts.push_back(std::move(mount));
    }
    const std::uint64_t rules = in.number();
    for (std::uint64_t i = 0; i < rules && in.ok(); ++i) {
        fsmount::AccessRule rule;
        rule.access = static_cast<fsmount::Access>(in.number());
        rule.path = in.text();
        rule.required = in.number() != 0;
        spec.access.push_back(std::move(rule));
    }
    spec.private_tmp = in.text();
    if (!in.ok()) {
        return base::fail(base::ErrorKind::internal, "bad_spec", "the scope's spec is cut short");
    }
    return spec;
}

}  // namespace ars::sandbox
