// The two archives of the codec: a writer that can't fail and a reader that never reads past its
// input. Both take the same calls, so that one field list per record serves both directions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace ars::store {

// Little-endian base 128; signed numbers are zigzag-coded, so that small ones of both signs stay
// short.
class ByteWriter {
  public:
    void operator()(std::uint64_t value) {
        while (value >= 0x80) {
            bytes_.push_back(static_cast<char>((value & 0x7f) | 0x80));
            value >>= 7;
        }
        bytes_.push_back(static_cast<char>(value));
    }
    void operator()(std::uint32_t value) { (*this)(std::uint64_t{value}); }
    void operator()(std::int64_t value) {
        const auto bits = static_cast<std::uint64_t>(value);
        (*this)((bits << 1) ^ (value < 0 ? ~std::uint64_t{0} : 0));
    }
    void operator()(std::uint8_t value) { bytes_.push_back(static_cast<char>(value)); }
    void operator()(bool value) { bytes_.push_back(value ? '\1' : '\0'); }
    void operator()(const std::string& value) {
        (*this)(std::uint64_t{value.size()});
        bytes_ += value;
    }
    template <class E>
        requires std::is_enum_v<E>
    void enumeration(const E& value, E /*last*/) {
        bytes_.push_back(static_cast<char>(value));
    }
    // The first byte of a record. Field lists ask for it where a later version added a field.
    void write_version(unsigned char version) {
        version_ = version;
        bytes_.push_back(static_cast<char>(version));
    }
    [[nodiscard]] unsigned char version() const { return version_; }

    [[nodiscard]] std::string take() { return std::move(bytes_); }

  private:
    std::string bytes_;
    unsigned char version_ = 0;
};

class ByteReader {
  public:
    explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

    void operator()(std::uint64_t& value) {
        value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            const std::uint64_t part = byte();
            // The tenth byte carries one bit.
            if (!ok_ || (shift == 63 && part > 1)) {
                return fail();
            }
            value |= (part & 0x7f) << shift;
            if (part < 0x80) {
                return;
            }
        }
        fail();
    }
    void operator()(std::uint32_t& value) {
        std::uint64_t wide = 0;
        (*this)(wide);
        if (wide > UINT32_MAX) {
            return fail();
        }
        value = static_cast<std::uint32_t>(wide);
    }
    void operator()(std::int64_t& value) {
        std::uint64_t bits = 0;
        (*this)(bits);
        value = static_cast<std::int64_t>((bits >> 1) ^ (~(bits & 1) + 1));
    }
    void operator()(std::uint8_t& value) { value = byte(); }
    void operator()(bool& value) {
        const unsigned char bit = byte();
        if (bit > 1) {
            return fail();
        }
        value = bit == 1;
    }
    void operator()(std::string& value) {
        std::uint64_t size = 0;
        (*this)(size);
        if (!ok_ || size > rest_.size()) {
            return fail();
        }
        value.assign(rest_.substr(0, static_cast<std::size_t>(size)));
        rest_.remove_prefix(static_cast<std::size_t>(size));
    }
    // `last` is the greatest known value.
    template <class E>
        requires std::is_enum_v<E>
    void enumeration(E& value, E last) {
        const unsigned char number = byte();
        if (number > static_cast<unsigned char>(last)) {
            return fail();
        }
        value = static_cast<E>(number);
    }
    // False for a version that nobody wrote yet.
    bool read_version(unsigned char newest) {
        version_ = byte();
        return version_ >= 1 && version_ <= newest;
    }
    [[nodiscard]] unsigned char version() const { return version_; }
    unsigned char byte() {
        if (rest_.empty()) {
            fail();
            return 0;
        }
        const auto value = static_cast<unsigned char>(rest_.front());
        rest_.remove_prefix(1);
        return value;
    }
    void fail() {
        ok_ = false;
        rest_ = {};
    }

    [[nodiscard]] bool ok() const { return ok_; }
    // True when everything was read and understood.
    [[nodiscard]] bool complete() const { return ok_ && rest_.empty(); }
    [[nodiscard]] std::size_t remaining() const { return rest_.size(); }

  private:
    std::string_view rest_;
    bool ok_ = true;
    unsigned char version_ = 0;
};

}  // namespace ars::store
