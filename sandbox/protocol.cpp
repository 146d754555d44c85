#include "sandbox/protocol.hpp"

#include "sandbox/packing.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ars::sandbox {

std::string encode_start(const StartText& start) {
    Writer out;
    out.text(start.cwd);
    out.list(start.argv);
    out.list(start.environment);
    for (const std::uint64_t number :
         {start.limits.cpu_seconds,
          start.limits.file_size,
          start.limits.open_files,
          start.limits.processes,
          std::uint64_t{start.rows},
          std::uint64_t{start.columns}}) {
        out.number(number);
    }
    return out.take();
}

base::Result<StartText> decode_start(std::string_view bytes) {
    Reader in(bytes);
    StartText start;
    start.cwd = in.text();
    start.argv = in.list();
    start.environment = in.list();
    start.limits.cpu_seconds = in.number();
    start.limits.file_size = in.number();
    start.limits.open_files = in.number();
    start.limits.processes = in.number();
    start.rows = static_cast<std::uint32_t>(in.number());
    start.columns = static_cast<std::uint32_t>(in.number());
    if (!in.ok() || start.argv.empty()) {
        return base::fail(base::ErrorKind::internal, "bad_start", "the command is cut short");
    }
    return start;
}

base::Result<base::Fd> pack_payload(Message& message, std::string& text, std::vector<int>& fds) {
    if (text.size() <= kInlineBytes) {
        return base::Fd();
    }
    auto file = memory_file("ars-message", text);
    if (file) {
        fds.push_back(file->get());
        message.payload_in_memfd = 1;
        text.clear();
    }
    return file;
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
    Received received;
    // Its size first: a buffer for the longest would lie deep in the stack, and a template copies
    // each page that it touches for each scope.
    ssize_t n = -1;
    do {
        n = ::recv(socket, nullptr, 0, MSG_PEEK | MSG_TRUNC);
    } while (n < 0 && errno == EINTR);
    const std::size_t size = std::min(n > 0 ? static_cast<std::size_t>(n) : 0, kMessageBytes);
    received.text.resize(size > sizeof(Message) ? size - sizeof(Message) : 0);
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMessageFds)];
    iovec parts[2] = {
        {&received.message, sizeof(Message)}, {received.text.data(), received.text.size()}
    };
    msghdr header{};
    header.msg_iov = parts;
    header.msg_iovlen = 2;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    if (n >= 0) {
        do {
            n = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
        } while (n < 0 && errno == EINTR);
    }
    if (n < 0) {
        return base::fail_errno("receive_failed", "recvmsg", errno);
    }
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
    if (received.message.payload_in_memfd != 0 && !received.fds.empty()) {
        auto text = base::read_to_end(received.fds.back().get(), kPayloadBytes);
        if (!text) {
            return std::unexpected(text.error());
        }
        received.text = std::move(*text);
        received.fds.pop_back();
    }
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
