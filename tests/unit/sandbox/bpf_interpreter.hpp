// Runs a seccomp program on paper: what the kernel would answer to a call, without making it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <linux/filter.h>
#include <linux/seccomp.h>

namespace ars::sandbox {

class BpfInterpreter {
  public:
    explicit BpfInterpreter(const std::string& program)
        : code_(program.size() / sizeof(sock_filter)) {
        std::memcpy(code_.data(), program.data(), code_.size() * sizeof(sock_filter));
    }

    [[nodiscard]] std::size_t size() const { return code_.size(); }

    // The program's SECCOMP_RET_*; nothing when it runs off its end or uses what is not known here.
    [[nodiscard]] std::optional<std::uint32_t> run(const seccomp_data& call) const {
        std::uint32_t accumulator = 0;
        for (std::size_t at = 0; at < code_.size(); ++at) {
            const sock_filter& now = code_[at];
            switch (now.code) {
                case BPF_LD | BPF_W | BPF_ABS:
                    if (now.k % 4 != 0 || now.k + 4 > sizeof call) {
                        return std::nullopt;
                    }
                    std::memcpy(&accumulator, reinterpret_cast<const char*>(&call) + now.k, 4);
                    break;
                case BPF_ALU | BPF_AND | BPF_K:
                    accumulator &= now.k;
                    break;
                case BPF_JMP | BPF_JA:
                    at += now.k;
                    break;
                case BPF_JMP | BPF_JEQ | BPF_K:
                    at += accumulator == now.k ? now.jt : now.jf;
                    break;
                case BPF_JMP | BPF_JGT | BPF_K:
                    at += accumulator > now.k ? now.jt : now.jf;
                    break;
                case BPF_JMP | BPF_JGE | BPF_K:
                    at += accumulator >= now.k ? now.jt : now.jf;
                    break;
                case BPF_JMP | BPF_JSET | BPF_K:
                    at += (accumulator & now.k) != 0 ? now.jt : now.jf;
                    break;
                case BPF_RET | BPF_K:
                    return now.k;
                default:
                    return std::nullopt;
            }
        }
        return std::nullopt;
    }

  private:
    std::vector<sock_filter> code_;
};

}  // namespace ars::sandbox
