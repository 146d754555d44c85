#include "fsmount/directory_stream.hpp"

#include "fsmount/guest_path.hpp"

#include <cerrno>
#include <utility>

#include <fcntl.h>

namespace ars::fsmount {

base::Result<DirectoryStream> DirectoryStream::take(base::Fd directory, const std::string& shown) {
    DIR* stream = ::fdopendir(directory.get());
    if (stream == nullptr) {
        return std::unexpected(file_error(shown, errno));
    }
    (void)directory.release();  // the stream closes it
    return DirectoryStream(stream);
}

base::Result<DirectoryStream> DirectoryStream::read(int directory, const std::string& shown) {
    base::Fd own(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!own) {
        return std::unexpected(file_error(shown, errno));
    }
    return take(std::move(own), shown);
}

std::optional<DirectoryStream::Item> DirectoryStream::next() {
    errno = 0;
    while (const dirent* entry = ::readdir(stream_.get())) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") {
            return Item{name, entry->d_type};
        }
        errno = 0;
    }
    error_ = errno;
    return std::nullopt;
}

}  // namespace ars::fsmount
