#include "fsmount/paths.hpp"

#include "fsmount/directory_stream.hpp"
#include "fsmount/layout.hpp"
#include "fsmount/tree_removal.hpp"

#include <climits>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

namespace ars::fsmount {

using base::Fd;
using base::Result;

namespace {

constexpr int kReadFlags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

// Turns a located object into one that can be read: the very object, not whatever has its name by
// now.
Fd reopen(const Fd& object, int flags) {
    std::array<char, 32> link{};
    std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", object.get());
    return Fd(::open(link.data(), flags));
}

Result<OpenFile> checked(Fd fd, const std::string& shown) {
    if (!fd) {
        return std::unexpected(file_error(shown, errno));
    }
    struct stat status{};
    if (::fstat(fd.get(), &status) != 0) {
        return std::unexpected(file_error(shown, errno));
    }
    if (!S_ISREG(status.st_mode)) {
        return std::unexpected(not_regular_file(shown, status.st_mode));
    }
    return OpenFile{std::move(fd), info_of(status)};
}

// Nothing when it is gone.
std::optional<DirectoryEntry> entry_of(int directory, std::string name) {
    DirectoryEntry entry{std::move(name), {}, {}};
    struct stat status{};
    if (::fstatat(directory, entry.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT) {
            return std::nullopt;
        }
        entry.accessible = false;
        return entry;
    }
    entry.info = info_of(status);
    if (entry.info.kind == FileKind::symlink) {
        std::array<char, PATH_MAX> target{};
        const ssize_t size =
            ::readlinkat(directory, entry.name.c_str(), target.data(), target.size());
        entry.link_target.assign(
            target.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))
        );
    }
    return entry;
}

// What replace_file() needs to know about a place, after the rights of its root were checked.
Result<Place> writable_place(
    const Workspace& workspace, const GuestPath& path, LastLink last = LastLink::follow
) {
    const std::string shown = path.shown();
    if (path.directory) {
        return std::unexpected(not_regular_file(shown, S_IFDIR));
    }
    if (path.root == GuestRoot::skills && workspace.skills() < 0) {
        return std::unexpected(file_error(shown, EROFS));  // what a shell sees there is empty
    }
    auto place = locate_place(workspace, path, last);
    if (!place && place.error().code == "not_found" && path.root == GuestRoot::user_data) {
        if (auto parent = make_parents(workspace, path); !parent) {
            return std::unexpected(parent.error());
        }
        place = locate_place(workspace, path, last);
    }
    if (!place) {
        return place;
    }
    if (place->root != GuestRoot::user_data) {
        return std::unexpected(file_error(shown, EROFS));
    }
    if (place->name.empty()) {
        return std::unexpected(not_regular_file(shown, S_IFDIR));
    }
    if (place->exists && !S_ISREG(place->status.st_mode)) {
        return std::unexpected(not_regular_file(shown, place->status.st_mode));
    }
    return place;
}

// What a file that has the place leaves to the one that replaces it.
Result<FileReplacement> replacement_of(const Place& place, const std::string& shown) {
    FileReplacement out{place.parent.get(), place.name, 0600, 0, place.exists};
    if (place.exists) {
        // A rename would replace a file that a shell may not write to.
        if (::faccessat(
                place.parent.get(), place.name.c_str(), W_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW
            ) != 0) {
            return std::unexpected(file_error(shown, errno));
        }
        out.mode = place.status.st_mode & 0777U;
        out.group = place.status.st_gid;
    }
    return out;
}

}  // namespace

FileInfo info_of(const struct stat& status) {
    FileInfo info;
    info.kind = kind_of(status.st_mode);
    info.size = static_cast<std::uint64_t>(status.st_size);
    info.stored_bytes = static_cast<std::uint64_t>(status.st_blocks) * 512;
    info.modified_ms = status.st_mtim.tv_sec * 1000 + status.st_mtim.tv_nsec / 1'000'000;
    info.mode = status.st_mode & 07777U;
    info.stamp = {
        status.st_ino,
        status.st_size,
        status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec
    };
    return info;
}

FileKind kind_of(mode_t mode) {
    if (S_ISREG(mode)) {
        return FileKind::file;
    }
    if (S_ISDIR(mode)) {
        return FileKind::directory;
    }
    return S_ISLNK(mode) ? FileKind::symlink : FileKind::other;
}

Paths Paths::within(std::shared_ptr<const Workspace> workspace, const std::string& workdir_path) {
    Paths out(std::move(workspace), guest_workdir(workdir_path));
    out.within_ = workdir_path;
    return out;
}

Result<GuestPath> Paths::parse(std::string_view path) const {
    auto out = parse_guest_path(path, cwd_);
    if (out && !within_.empty()) {
        out->within = within_;
        const bool below = out->root == GuestRoot::user_data && out->rest.starts_with(within_) &&
                           (out->rest.size() == within_.size() || out->rest[within_.size()] == '/');
        if (!below) {
            return std::unexpected(outside_directory(out->shown(), ""));
        }
    }
    return out;
}

Result<OpenFile> Paths::open_read(std::string_view path) const {
    const auto parsed = parse(path);
    if (!parsed) {
        return std::unexpected(parsed.error());
    }
    const std::string shown = parsed->shown();
    auto located = locate(*workspace_, *parsed, LastLink::follow, resolver_);
    if (!located) {
        return std::unexpected(located.error());
    }
    if (!S_ISREG(located->status.st_mode)) {
        return std::unexpected(not_regular_file(shown, located->status.st_mode));
    }
    return checked(reopen(located->object, kReadFlags), shown);
}

Result<FileInfo> Paths::stat(std::string_view path) const {
    const auto parsed = parse(path);
    if (!parsed) {
        return std::unexpected(parsed.error());
    }
    const auto located = locate(*workspace_, *parsed, LastLink::follow, resolver_);
    if (!located) {
        return std::unexpected(located.error());
    }
    return info_of(located->status);
}

Result<Fd> Paths::open_directory(std::string_view path) const {
    const auto parsed = parse(path);
    if (!parsed) {
        return std::unexpected(parsed.error());
    }
    auto located = locate(*workspace_, *parsed, LastLink::follow, resolver_);
    if (!located) {
        return std::unexpected(located.error());
    }
    if (!S_ISDIR(located->status.st_mode)) {
        return base::fail(
            base::ErrorKind::invalid, "not_a_directory", parsed->shown() + " is not a directory"
        );
    }
    Fd out = reopen(located->object, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!out) {
        return std::unexpected(file_error(parsed->shown(), errno));
    }
    return out;
}

Result<DirectoryPage> Paths::list_directory(
    std::string_view path,
    const std::string& after,
    std::size_t limit,
    const std::function<bool(std::string_view name)>& hidden
) const {
    auto directory = open_directory(path);
    if (!directory) {
        return std::unexpected(directory.error());
    }
    const std::string shown = parse(path)->shown();
    auto stream = DirectoryStream::take(std::move(*directory), shown);
    if (!stream) {
        return std::unexpected(stream.error());
    }
    DirectoryPage page;
    // The `limit` smallest names behind `after`, largest on top.
    std::vector<std::string> names;
    std::uint64_t behind = 0;
    while (auto item = stream->next()) {
        if (hidden && hidden(item->name)) {
            continue;
        }
        ++page.total;
        if (item->name <= after) {
            continue;
        }
        ++behind;
        if (names.size() < limit || (!names.empty() && item->name < names.front())) {
            names.emplace_back(item->name);
            std::ranges::push_heap(names);
            if (names.size() > limit) {
                std::ranges::pop_heap(names);
                names.pop_back();
            }
        }
    }
    if (stream->error() != 0) {
        return std::unexpected(file_error(shown, stream->error()));
    }
    std::ranges::sort_heap(names);
    page.after_these = behind - names.size();
    page.cursor = page.after_these > 0 && !names.empty() ? names.back() : "";
    for (std::string& name : names) {
        if (auto entry = entry_of(stream->descriptor(), std::move(name))) {
            page.entries.push_back(std::move(*entry));
        }
    }
    return page;
}

Result<bool> Paths::write_file(
    std::string_view path, std::string_view bytes, const WriteOptions& options
) const {
    const auto parsed = parse(path);
    if (!parsed) {
        return std::unexpected(parsed.error());
    }
    const std::string shown = parsed->shown();
    const auto place = writable_place(*workspace_, *parsed);
    if (!place) {
        return std::unexpected(place.error());
    }
    if (place->exists && !options.overwrite) {
        return std::unexpected(file_error(shown, EEXIST));
    }
    if (options.expected && (!place->exists || info_of(place->status).stamp != *options.expected)) {
        return base::fail(
            base::ErrorKind::conflict,
            "changed_meanwhile",
            shown + " was changed by somebody else meanwhile; read it again"
        );
    }
    const auto replacement = replacement_of(*place, shown);
    if (!replacement) {
        return std::unexpected(replacement.error());
    }
    if (auto written = replace_file(*replacement, bytes, shown); !written) {
        return std::unexpected(written.error());
    }
    return !place->exists;
}

Result<Fd> Paths::create_file(std::string_view path) const {
    const auto parsed = parse(path);
    if (!parsed) {
        return std::unexpected(parsed.error());
    }
    const std::string shown = parsed->shown();
    const auto place = writable_place(*workspace_, *parsed);
    if (!place) {
        return std::unexpected(place.error());
    }
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    Fd out(::openat(place->parent.get(), place->name.c_str(), kFlags, 0600));
    if (!out || ::fchmod(out.get(), 0600) != 0) {
        return std::unexpected(file_error(shown, errno));
    }
    return out;
}

Result<Fd> Paths::create_unnamed_file(std::string_view path) const {
    const auto parsed = parse(path);
    if (!parsed) {
        return std::unexpected(parsed.error());
    }
    const auto root = root_descriptor(*workspace_, parsed->root);
    if (!root) {
        return std::unexpected(root.error());
    }
    Fd out(::openat(*root, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (!out || ::fchmod(out.get(), 0600) != 0) {
        return std::unexpected(file_error(parsed->shown(), errno));
    }
    return out;
}

Result<void> Paths::publish(const Fd& file, std::string_view path) const {
    const auto parsed = parse(path);
    if (!parsed) {
        return std::unexpected(parsed.error());
    }
    const auto place = writable_place(*workspace_, *parsed);
    if (!place) {
        return std::unexpected(place.error());
    }
    std::array<char, 32> link{};
    std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", file.get());
    if (::linkat(
            AT_FDCWD, link.data(), place->parent.get(), place->name.c_str(), AT_SYMLINK_FOLLOW
        ) != 0) {
        return std::unexpected(file_error(parsed->shown(), errno));
    }
    return {};
}

Result<NewFile> Paths::begin_file() const {
    const auto root = root_descriptor(*workspace_, GuestRoot::user_data);
    if (!root) {
        return std::unexpected(root.error());
    }
    sweep_temporary_names(*root);
    return NewFile::make(*root, std::string(kUserData));
}

Result<bool> Paths::replace_with(NewFile& file, std::string_view path) const {
    const auto parsed = parse(path);
    if (!parsed) {
        return std::unexpected(parsed.error());
    }
    const auto place = writable_place(*workspace_, *parsed, LastLink::keep);
    if (!place) {
        return std::unexpected(place.error());
    }
    const auto replacement = replacement_of(*place, parsed->shown());
    if (!replacement) {
        return std::unexpected(replacement.error());
    }
    sweep_temporary_names(replacement->directory);
    if (auto put = file.put_in_place(*replacement, parsed->shown()); !put) {
        return std::unexpected(put.error());
    }
    return !place->exists;
}

Result<void> Paths::publish_all(std::vector<NamedFile>& files) const {
    std::vector<Place> places;
    for (const NamedFile& file : files) {
        auto place = named_place(file.path);
        if (!place) {
            return std::unexpected(place.error());
        }
        if (place->exists) {
            return std::unexpected(file_error(parse(file.path)->shown(), EEXIST));
        }
        places.push_back(std::move(*place));
    }
    for (std::size_t i = 0; i < files.size(); ++i) {
        const FileReplacement target{places[i].parent.get(), places[i].name, 0600, 0, false};
        auto put = files[i].file.put_in_place(target, parse(files[i].path)->shown());
        if (put) {
            continue;
        }
        while (i-- > 0) {  // a name was taken meanwhile: those that were given are taken back
            struct stat ours{};
            struct stat there{};
            const char* const name = places[i].name.c_str();
            const int parent = places[i].parent.get();
            if (::fstat(files[i].file.descriptor(), &ours) == 0 &&
                ::fstatat(parent, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
                ours.st_ino == there.st_ino) {
                ::unlinkat(parent, name, 0);
            }
        }
        return put;
    }
    return {};
}

Result<void> Paths::make_directory(std::string_view path) const {
    const auto place = named_place(path);
    if (!place) {
        return std::unexpected(place.error());
    }
    const std::string shown = parse(path)->shown();
    if (::mkdirat(place->parent.get(), place->name.c_str(), 0700) != 0) {
        return std::unexpected(file_error(shown, errno));
    }
    const Fd made(::openat(
        place->parent.get(), place->name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
    ));
    if (!made || ::fchmod(made.get(), 0700) != 0) {
        return std::unexpected(file_error(shown, errno));
    }
    return {};
}

Result<void> Paths::remove(std::string_view path, base::Deadline deadline) const {
    const auto place = named_place(path);
    if (!place) {
        return std::unexpected(place.error());
    }
    const std::string shown = parse(path)->shown();
    if (!place->exists) {
        return std::unexpected(file_error(shown, ENOENT));
    }
    const char* const name = place->name.c_str();
    if (!S_ISDIR(place->status.st_mode)) {
        return ::unlinkat(place->parent.get(), name, 0) == 0
                   ? Result<void>()
                   : std::unexpected(file_error(shown, errno));
    }
    if (!remove_tree_at(place->parent.get(), name, deadline)) {
        return base::fail(
            base::ErrorKind::unavailable,
            "not_removed",
            shown +
                " could not be removed whole: it holds too much for one request, or something "
                "that may not be removed; ask again, or look at what is left"
        );
    }
    return {};
}

// The place of a name below user-data that may be made or removed: a link is the place itself.
Result<Place> Paths::named_place(std::string_view path) const {
    const auto parsed = parse(path);
    if (!parsed) {
        return std::unexpected(parsed.error());
    }
    auto place = locate_place(*workspace_, *parsed, LastLink::keep);
    if (!place) {
        return place;
    }
    if (place->root != GuestRoot::user_data) {
        return std::unexpected(file_error(parsed->shown(), EROFS));
    }
    if (place->name.empty()) {
        return base::fail(
            base::ErrorKind::invalid,
            "is_root",
            parsed->shown() + " is the root: name something in it"
        );
    }
    return place;
}

Result<OpenFile> open_entry(int directory, const char* name, const std::string& shown) {
    return checked(Fd(::openat(directory, name, kReadFlags | O_NOFOLLOW)), shown);
}

}  // namespace ars::fsmount
