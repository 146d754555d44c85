// Reading a directory entry by entry, so that one with 100,000 names costs no more memory than one
// with ten. Internal to the room.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <dirent.h>

namespace ars::fsmount {

class DirectoryStream {
  public:
    struct Item {
        std::string_view name;            // until the next call
        unsigned char type = DT_UNKNOWN;  // DT_*: some file systems don't tell
    };

    // Takes a directory that is open for reading, and starts where it stands.
    [[nodiscard]] static base::Result<DirectoryStream> take(
        base::Fd directory, const std::string& shown
    );
    // Opens `directory` anew: a duplicate would share its read position.
    [[nodiscard]] static base::Result<DirectoryStream> read(
        int directory, const std::string& shown
    );
    // "." and ".." are left out. Nothing at the end, or after an error.
    [[nodiscard]] std::optional<Item> next();
    [[nodiscard]] int error() const { return error_; }  // errno, 0 = none
    [[nodiscard]] int descriptor() const { return ::dirfd(stream_.get()); }

  private:
    struct Close {
        void operator()(DIR* stream) const { ::closedir(stream); }
    };
    explicit DirectoryStream(DIR* stream) : stream_(stream) {}
    std::unique_ptr<DIR, Close> stream_;
    int error_ = 0;
};

}  // namespace ars::fsmount
