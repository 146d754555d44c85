#include "fsmount/directory_stream.hpp"

#include "fsmount/guest_path.hpp"

#include <cerrno>

#include <fcntl.h>

namespace ars::fsmount {

base::Result<DirectoryStream> DirectoryStream::read(
    const base::Fd& directory, const std::string& shown
) {
    // Opened anew, not duplicated: a duplicate would share its read position.
    base::Fd own(::openat(directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!own) {
        return std::unexpected(file_error(shown, errno));
    }
    DIR* stream = ::fdopendir(own.get());
    if (stream == nullptr) {
        return std::unexpected(file_error(shown, errno));
    }
    (void)own.release();  // the stream closes it
    return DirectoryStream(stream);
}

std::optional<DirectoryStream::Item> DirectoryStream::next() {
    while (const dirent* entry = ::readdir(stream_.get())) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") {
            return Item{name, entry->d_type};
        }
    }
    return std::nullopt;
}

}  // namespace ars::fsmount
