// What the server says to its template (the process that scopes are cloned from), and what server
// and a scope's init say to each other, over seqpacket pairs. Both ends are built together, so the
// layout is plain memory; it never leaves the machine.
//
// To the template: setup (what all scopes share), make_scope (the scope's spec, its end of the
// control pair and its detached mounts attached), network_free.
// To the init: start (stdio attached), signal_tree, kill_tree, list.
// From both, on the scope's pair: init_pid, step_failed, ready, exec_failed, ended, emptied,
// processes.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"
#include "sandbox/resource_limits.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace ars::sandbox {

enum class Tag : std::uint32_t {
    // to the template
    setup,         // text: an InitSpec of which only the mounts count; all of it, to a supervisor
    make_scope,    // id: names the scope's network for network_free; descriptors: control, mounts
    network_free,  // nothing of scope `id` is left, its network may serve again
    // to the init
    start,        // text: see encode_start(); descriptors: stdout, stderr, [stdin], or with a
                  // terminal the socket that its master goes back through
    signal_tree,  // value: signal
    kill_tree,    // STOP and KILL sweeps until the tree is empty
    list,         // answered by `processes`
    // up
    init_pid,     // value: pid in the server's namespace
    step_failed,  // value: errno, text: step '\0' what
    ready,        // value: kReadyFreshProc | kReadyNamesCalls; descriptor: the proxy's listener
    exec_failed,  // value: errno, text: "fork", "terminal", "limits", "chdir" or "exec"; it is over
    ended,        // value: wait status, flag: nothing else of the command's tree is left, cpu_ms
    emptied,      // nothing of the command's tree is left
    processes,    // text: (pid ' ' command '\0')*
    oom,          // killed for memory; value: KiB of the command, flag: KiB of the scope
    violation,  // value: number of a refused call, flag: its telling argument; id 0: of no command
};

struct Message {
    Tag tag = Tag::setup;
    std::int32_t value = 0;
    std::uint64_t id = 0;  // of the command
    std::uint32_t flag = 0;
    std::uint32_t payload_in_memfd = 0;  // the text is in the last descriptor attached
    std::uint64_t cpu_ms = 0;            // ended: of the command and the children it waited for
};

inline constexpr int kReadyFreshProc = 1;   // /proc is the scope's own
inline constexpr int kReadyNamesCalls = 2;  // refused calls are reported
inline constexpr std::size_t kMessageBytes = 64 * 1024;
inline constexpr std::size_t kInlineBytes = 32 * 1024;          // a longer text travels in a memfd
inline constexpr std::size_t kPayloadBytes = 16 * 1024 * 1024;  // and may have this many
inline constexpr std::size_t kMessageFds = 250;                 // SCM_MAX_FD is 253
inline constexpr std::size_t kListedProcesses = 64;
inline constexpr std::size_t kListedCommandBytes = 200;
inline constexpr int kControlFd = 3;  // of template and init, from their start
inline constexpr const char* kInitName = "ars-scope-init";
inline constexpr const char* kOwnNetwork = "own";  // argv[1] of a template: its scopes' network
inline constexpr const char* kSharedNetwork = "shared";
inline constexpr const char* kSupervisor = "landlock";  // argv[1] of a scope without a template
inline constexpr int kProxyPort = 3128;  // where the proxy of an allow-list listens in the scope

struct StartText {
    std::string cwd;
    std::vector<std::string> argv;
    std::vector<std::string> environment;  // "NAME=value"
    ResourceLimits limits = {};
    std::uint32_t rows = 0;  // of its terminal; 0 = it has none
    std::uint32_t columns = 0;
};
[[nodiscard]] std::string encode_start(const StartText& start);
[[nodiscard]] base::Result<StartText> decode_start(std::string_view bytes);

// Moves a text that is too long for one message into a sealed memfd, the last of `fds`; the answer
// owns it and must live until the message is sent. receive_message() puts it back.
[[nodiscard]] base::Result<base::Fd> pack_payload(
    Message& message, std::string& text, std::vector<int>& fds
);

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
