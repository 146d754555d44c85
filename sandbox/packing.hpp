// The flat byte form of what server and init tell each other. Both are built from the same sources
// and run on the same machine, so numbers are plain memory.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace ars::sandbox {

class Writer {
  public:
    void number(std::uint64_t value) {
        bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    void text(std::string_view value) {
        number(value.size());
        bytes_.append(value);
    }
    void list(const std::vector<std::string>& values) {
        number(values.size());
        for (const std::string& value : values) {
            text(value);
        }
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
    std::vector<std::string> list() {
        std::vector<std::string> values;
        const std::uint64_t count = number();
        for (std::uint64_t i = 0; i < count && ok_; ++i) {
            values.push_back(text());
        }
        return values;
    }
    [[nodiscard]] bool ok() const { return ok_; }

  private:
    std::string_view bytes_;
    bool ok_ = true;
};

}  // namespace ars::sandbox
