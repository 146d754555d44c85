// What the server and a scope's init say to each other over their seqpacket pair. Both ends are the
// same binary, so the layout is plain memory; it never leaves the machine.
//
// Down: setup (the spec's memfd and detached mounts attached), start (stdio attached), signal_tree,
// kill_tree, list. Up: init_pid, step_failed, ready, exec_failed, ended, emptied, processes.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"
#include "fsmount/mount_plan.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace ars::sandbox {

enum class Tag : std::uint32_t {
    // down
    setup,
    start,        // text: see encode_start(); descriptors: stdout, stderr, [stdin]
    signal_tree,  // value: signal
    kill_tree,    // STOP and KILL sweeps until the tree is empty
    list,         // answered by `processes`
    // up
    init_pid,     // value: pid in the server's namespace
    step_failed,  // value: errno, text: step '\0' what
    ready,        // value: 1 when /proc is the scope's own
    exec_failed,  // value: errno, text: "fork", "chdir" or "exec"; the command is over
    ended,        // value: wait status, flag: nothing else of the command's tree is left
    emptied,      // nothing of the command's tree is left
    processes,    // text: (pid ' ' command '\0')*
};

struct Message {
    Tag tag = Tag::setup;
    std::int32_t value = 0;
    std::uint64_t id = 0;  // of the command
    std::uint32_t flag = 0;
    std::uint32_t payload_in_memfd = 0;  // start: the text is in the last descriptor attached
};

inline constexpr std::size_t kMessageBytes = 64 * 1024;
inline constexpr std::size_t kInlineBytes = 32 * 1024;  // a longer start message travels in a memfd
inline constexpr std::size_t kMessageFds = 250;         // SCM_MAX_FD is 253
inline constexpr std::size_t kListedProcesses = 64;
inline constexpr std::size_t kListedCommandBytes = 200;
inline constexpr int kControlFd = 3;  // of the init, from its start
inline constexpr std::string_view kInitName = "ars-scope-init";

// All that an init must know. `mounts[i].fd` travels beside it as a descriptor.
struct InitSpec {
    std::string hostname;
    bool own_network = true;
    std::uint32_t processes = 0;
    std::uint64_t file_size = 0;
    std::uint32_t open_files = 0;
    std::string seccomp;  // an array of sock_filter
    std::vector<fsmount::Mount> mounts;
};

[[nodiscard]] std::string encode_spec(const InitSpec& spec);
// `fds` are taken in order by the mounts that had one.
[[nodiscard]] base::Result<InitSpec> decode_spec(std::string_view bytes, std::vector<base::Fd> fds);

struct StartText {
    std::string cwd;
    std::vector<std::string> argv;
    std::vector<std::string> environment;  // "NAME=value"
};
[[nodiscard]] std::string encode_start(const StartText& start);
[[nodiscard]] base::Result<StartText> decode_start(std::string_view bytes);

// One message with descriptors. Never blocks: errno EAGAIN when the other end does not read.
[[nodiscard]] int send_message(
    int socket, const Message& message, std::string_view text, std::span<const int> fds
);

struct Received {
    Message message;
    std::string text;
    std::vector<base::Fd> fds;
};
// Waits for a message unless the socket is non-blocking (then errno EAGAIN). A closed peer is the
// error "closed".
[[nodiscard]] base::Result<Received> receive_message(int socket);

// A sealed memfd holding `bytes`.
[[nodiscard]] base::Result<base::Fd> memory_file(const char* name, std::string_view bytes);

}  // namespace ars::sandbox
