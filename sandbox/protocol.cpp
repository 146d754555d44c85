#include "sandbox/protocol.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ars::sandbox {

namespace {

class Writer {
  public:
    void number(std::uint64_t value) {
        bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    void text(std::string_view value) {
        number(value.size());
        bytes_.append(value);
    }
    [[nodiscard]] std::string take() { return std::move(bytes_); }

  private:
    std::string bytes_;
};

// Reads what Writer wrote; after the first short read everything is empty and `ok()` false.
class Reader {
  public:
    explicit Reader(std::string_view bytes) : bytes_(bytes) {}
    std::uint64_t number() {
        std::uint64_t value = 0;
        if (bytes_.size() < sizeof value) {
            ok_ = false;
            bytes_ = {};
            return 0;
        }
        std::memcpy(&value, bytes_.data(), sizeof value);
        bytes_.remove_prefix(sizeof value);
        return value;
    }
    std::string text() {
        const std::uint64_t size = number();
        if (size > bytes_.size()) {
            ok_ = false;
            bytes_ = {};
            return {};
        }
        std::string value(bytes_.substr(0, size));
        bytes_.remove_prefix(size);
        return value;
    }
    [[nodiscard]] bool ok() const { return ok_; }

  private:
    std::string_view bytes_;
    bool ok_ = true;
};

void write_list(Writer& out, const std::vector<std::string>& list) {
    out.number(list.size());
    for (const std::string& item : list) {
        out.text(item);
    }
}

std::vector<std::string> read_list(Reader& in) {
    std::vector<std::string> list;
    const std::uint64_t count = in.number();
    for (std::uint64_t i = 0; i < count && in.ok(); ++i) {
        list.push_back(in.text());
    }
    return list;
}

}  // namespace

std::string encode_spec(const InitSpec& spec) {
    Writer out;
    out.text(spec.hostname);
    out.number(spec.own_network ? 1 : 0);
    out.number(spec.processes);
    out.number(spec.file_size);
    out.number(spec.open_files);
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
    return out.take();
}

base::Result<InitSpec> decode_spec(std::string_view bytes, std::vector<base::Fd> fds) {
    Reader in(bytes);
    InitSpec spec;
    spec.hostname = in.text();
    spec.own_network = in.number() != 0;
    spec.processes = static_cast<std::uint32_t>(in.number());
    spec.file_size = in.number();
    spec.open_files = static_cast<std::uint32_t>(in.number());
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
    if (!in.ok()) {
        return base::fail(base::ErrorKind::internal, "bad_spec", "the scope's spec is cut short");
    }
    return spec;
}

std::string encode_start(const StartText& start) {
    Writer out;
    out.text(start.cwd);
    write_list(out, start.argv);
    write_list(out, start.environment);
    return out.take();
}

base::Result<StartText> decode_start(std::string_view bytes) {
    Reader in(bytes);
    StartText start;
    start.cwd = in.text();
    start.argv = read_list(in);
    start.environment = read_list(in);
    if (!in.ok() || start.argv.empty()) {
        return base::fail(base::ErrorKind::internal, "bad_start", "the command is cut short");
    }
    return start;
}

int send_message(
    int socket, const Message& message, std::string_view text, std::span<const int> fds
) {
    iovec parts[2] = {
        {const_cast<Message*>(&message), sizeof message},
        {const_cast<char*>(text.data()), text.size()}
    };
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMessageFds)];
    msghdr header{};
    header.msg_iov = parts;
    header.msg_iovlen = 2;
    if (fds.size() > kMessageFds) {
        return E2BIG;
    }
    if (!fds.empty()) {
        header.msg_control = control;
        header.msg_controllen = CMSG_SPACE(fds.size_bytes());
        cmsghdr* rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(fds.size_bytes());
        std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
    }
    for (;;) {
        if (::sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
            return 0;
        }
        if (errno != EINTR) {
            return errno;
        }
    }
}

base::Result<Received> receive_message(int socket) {
    std::string buffer(kMessageBytes, '\0');
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMessageFds)];
    iovec part{buffer.data(), buffer.size()};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    ssize_t n = -1;
    do {
        n = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return base::fail_errno("receive_failed", "recvmsg", errno);
    }
    Received received;
    for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
            received.fds.emplace_back(fd);
        }
    }
    if (static_cast<std::size_t>(n) < sizeof(Message)) {
        return base::fail(base::ErrorKind::unavailable, "closed", "the other end is gone");
    }
    std::memcpy(&received.message, buffer.data(), sizeof(Message));
    buffer.resize(static_cast<std::size_t>(n));
    buffer.erase(0, sizeof(Message));
    received.text = std::move(buffer);
    return received;
}

base::Result<base::Fd> memory_file(const char* name, std::string_view bytes) {
    base::Fd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!fd) {
        return base::fail_errno("memfd_failed", "memfd_create", errno);
    }
    if (auto written = base::write_all(fd.get(), bytes); !written) {
        return std::unexpected(written.error());
    }
    if (::lseek(fd.get(), 0, SEEK_SET) != 0 ||
        ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) !=
            0) {
        return base::fail_errno("memfd_failed", "seal memfd", errno);
    }
    return fd;
}

}  // namespace ars::sandbox
