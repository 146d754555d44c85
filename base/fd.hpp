// Ownership of a file descriptor. Nothing else in the program holds an owning raw int.
#pragma once

#include "base/result.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace ars::base {

class Fd {
  public:
    Fd() = default;
    explicit Fd(int raw) noexcept : raw_(raw) {}
    Fd(Fd&& other) noexcept : raw_(std::exchange(other.raw_, -1)) {}
    Fd& operator=(Fd&& other) noexcept {
        if (this != &other) {
            reset();
            raw_ = std::exchange(other.raw_, -1);
        }
        return *this;
    }
    Fd(const Fd&) = delete;
    Fd& operator=(const Fd&) = delete;
    ~Fd() { reset(); }

    [[nodiscard]] int get() const noexcept { return raw_; }
    [[nodiscard]] explicit operator bool() const noexcept { return raw_ >= 0; }
    [[nodiscard]] int release() noexcept { return std::exchange(raw_, -1); }
    void reset() noexcept;

  private:
    int raw_ = -1;
};

struct Pipe {
    Fd read;
    Fd write;
};

// One factory per system call; every descriptor is close-on-exec.
[[nodiscard]] Result<Pipe> make_pipe();
[[nodiscard]] Result<Fd> open_file(const std::string& path, int flags, unsigned mode = 0);
[[nodiscard]] Result<Fd> duplicate(int fd);

// Whole-buffer I/O that retries EINTR and short transfers. Blocking: never on the I/O thread for
// anything but small files and pipes known to have room.
[[nodiscard]] Result<void> write_all(int fd, std::string_view bytes);
[[nodiscard]] Result<std::string> read_to_end(int fd, std::size_t max_bytes);
[[nodiscard]] Result<std::string> read_file(const std::string& path, std::size_t max_bytes);

}  // namespace ars::base
