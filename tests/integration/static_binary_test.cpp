// The shipped file must start on any Linux of its architecture: no loader to find (PT_INTERP) and
// no library to look for (DT_NEEDED). Read from the ELF headers themselves, so that no tool's
// wording is trusted.
#include "base/fd.hpp"
#include "base/limits.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include <elf.h>
#include <fcntl.h>

namespace ars {
namespace {

constexpr std::size_t kMaxBinary = 512 * base::limits::kMiB;

// Copies one ELF structure out of the file; a range that is not in it fails the test.
template <class T>
T read_at(const std::string& file, std::uint64_t offset) {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (offset > file.size() || file.size() - offset < sizeof value) {
        ADD_FAILURE() << "the ELF headers point outside the file, at " << offset;
        return value;
    }
    std::memcpy(&value, file.data() + offset, sizeof value);
    return value;
}

class StaticBinary : public testing::Test {
  protected:
    void SetUp() override {
        auto bytes = base::read_file(ARS_BINARY, kMaxBinary);
        ASSERT_TRUE(bytes.has_value()) << bytes.error().message;
        file_ = std::move(*bytes);
        ASSERT_GE(file_.size(), sizeof(Elf64_Ehdr));
        ASSERT_EQ(file_.substr(0, SELFMAG), ELFMAG);
        header_ = read_at<Elf64_Ehdr>(file_, 0);
        ASSERT_EQ(header_.e_ident[EI_CLASS], ELFCLASS64);
        for (std::uint64_t i = 0; i < header_.e_phnum; ++i) {
            segments_.push_back(
                read_at<Elf64_Phdr>(file_, header_.e_phoff + i * header_.e_phentsize)
            );
        }
        ASSERT_FALSE(segments_.empty());
    }

    [[nodiscard]] std::size_t count_segments(std::uint32_t type) const {
        std::size_t count = 0;
        for (const Elf64_Phdr& segment : segments_) {
            count += segment.p_type == type ? 1 : 0;
        }
        return count;
    }

    [[nodiscard]] std::vector<Elf64_Dyn> dynamic_entries() const {
        std::vector<Elf64_Dyn> entries;
        for (const Elf64_Phdr& segment : segments_) {
            if (segment.p_type != PT_DYNAMIC) {
                continue;
            }
            for (std::uint64_t at = 0; at + sizeof(Elf64_Dyn) <= segment.p_filesz;
                 at += sizeof(Elf64_Dyn)) {
                entries.push_back(read_at<Elf64_Dyn>(file_, segment.p_offset + at));
                if (entries.back().d_tag == DT_NULL) {
                    break;
                }
            }
        }
        return entries;
    }

    std::string file_;
    Elf64_Ehdr header_{};
    std::vector<Elf64_Phdr> segments_;
};

TEST_F(StaticBinary, NamesNoInterpreter) {
    EXPECT_GT(count_segments(PT_LOAD), 0U);
    EXPECT_EQ(count_segments(PT_INTERP), 0U);
}

TEST_F(StaticBinary, NeedsNoSharedLibrary) {
    for (const Elf64_Dyn& entry : dynamic_entries()) {
        EXPECT_NE(entry.d_tag, DT_NEEDED);
    }
}

TEST_F(StaticBinary, IsPositionIndependent) {
    EXPECT_EQ(header_.e_type, ET_DYN);
    bool is_pie = false;
    for (const Elf64_Dyn& entry : dynamic_entries()) {
        is_pie = is_pie || (entry.d_tag == DT_FLAGS_1 && (entry.d_un.d_val & DF_1_PIE) != 0);
    }
    EXPECT_TRUE(is_pie);
}

TEST_F(StaticBinary, HasNoExecutableStackAndNoWritableCode) {
    EXPECT_EQ(count_segments(PT_GNU_STACK), 1U);
    EXPECT_EQ(count_segments(PT_GNU_RELRO), 1U);
    for (const Elf64_Phdr& segment : segments_) {
        EXPECT_FALSE((segment.p_flags & PF_X) != 0 && (segment.p_flags & PF_W) != 0)
            << "segment of type " << segment.p_type << " is writable and executable";
    }
}

}  // namespace
}  // namespace ars
