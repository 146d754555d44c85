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

    // Reads through a copy of `directory`, which must be open for reading and stays usable.
    [[nodiscard]] static base::Result<DirectoryStream> read(
        const base::Fd& directory, const std::string& shown
    );
    // "." and ".." are left out.
    [[nodiscard]] std::optional<Item> next();

  private:
    struct Close {
        void operator()(DIR* stream) const { ::closedir(stream); }
    };
    explicit DirectoryStream(DIR* stream) : stream_(stream) {}
    std::unique_ptr<DIR, Close> stream_;
};

}  // namespace ars::fsmount
