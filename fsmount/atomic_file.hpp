// Writing a file so that a reader, or a writer that is killed, meets the old content or the new
// one. Not synced to the disk, as little as what a shell writes.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"

#include <string>
#include <string_view>
#include <utility>

#include <sys/types.h>

namespace ars::fsmount {

struct FileReplacement {
    int directory = -1;
    std::string name;
    unsigned mode = 0600;
    gid_t group = 0;        // of the file that is replaced
    bool replaces = false;  // false: fails with already_exists when anything has the name
};

// A name that a new file has for a moment, or as long as it grows where the file system has no
// files without one. Removed with this object; what a killed writer leaves is removed by the next
// write in that directory.
class TemporaryName {
  public:
    TemporaryName() = default;
    TemporaryName(base::Fd directory, std::string name)
        : directory_(std::move(directory)), name_(std::move(name)) {}
    TemporaryName(TemporaryName&& other) noexcept = default;
    TemporaryName& operator=(TemporaryName&& other) noexcept {
        std::swap(directory_, other.directory_);
        std::swap(name_, other.name_);
        return *this;
    }
    ~TemporaryName();

    [[nodiscard]] bool given() const { return static_cast<bool>(directory_); }
    [[nodiscard]] int directory() const { return directory_.get(); }
    [[nodiscard]] const std::string& name() const { return name_; }
    void forget() { directory_.reset(); }  // a rename took it away

  private:
    base::Fd directory_;
    std::string name_;
};

// Content that nobody sees until it is whole. Only fsmount/paths gives it its name.
class NewFile {
  public:
    // On the file system of `directory`.
    [[nodiscard]] static base::Result<NewFile> make(int directory, const std::string& shown);
    [[nodiscard]] base::Result<void> write(std::string_view bytes, const std::string& shown);
    [[nodiscard]] base::Result<void> put_in_place(
        const FileReplacement& target, const std::string& shown
    );
    [[nodiscard]] int descriptor() const { return file_.get(); }

  private:
    base::Fd file_;
    TemporaryName temporary_;
};

// Removes the temporary names in `directory` whose writers were killed.
void sweep_temporary_names(int directory);

// All of it, through a file in the same directory.
[[nodiscard]] base::Result<void> replace_file(
    const FileReplacement& target, std::string_view bytes, const std::string& shown
);

}  // namespace ars::fsmount
