// The only place that turns a guest path into an open file. File tools and the API go through it,
// so they give the same verdict as a shell in the scope: links inside user-data and skills work,
// what leads out is refused.
//
// Every function blocks (call it off the I/O thread) and names the guest path in its errors, never
// a host path. Codes: see file_error() in guest_path.hpp.
#pragma once

#include "base/deadline.hpp"
#include "base/fd.hpp"
#include "base/result.hpp"
#include "fsmount/atomic_file.hpp"
#include "fsmount/guest_path.hpp"
#include "fsmount/resolution.hpp"
#include "fsmount/workspace.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>

namespace ars::fsmount {

enum class FileKind : std::uint8_t { file, directory, symlink, other };
[[nodiscard]] FileKind kind_of(mode_t mode);

// Tells whether a file is still the one that was read.
struct FileStamp {
    std::uint64_t inode = 0;
    std::int64_t size = 0;
    std::int64_t modified_ns = 0;
    friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

struct FileInfo {
    FileKind kind = FileKind::other;
    std::uint64_t size = 0;
    std::uint64_t stored_bytes = 0;  // less than size: a sparse file
    std::int64_t modified_ms = 0;
    unsigned mode = 0;  // permission bits
    FileStamp stamp;
};

[[nodiscard]] FileInfo info_of(const struct stat& status);

struct OpenFile {
    base::Fd fd;  // O_RDONLY, a regular file
    FileInfo info;
};

struct DirectoryEntry {
    std::string name;
    FileInfo info;
    std::string link_target;  // symlinks only
    bool accessible = true;   // false: the directory may be read but not entered; info is empty
};

struct DirectoryPage {
    std::vector<DirectoryEntry> entries;  // sorted by name
    std::uint64_t total = 0;              // entries of the whole directory
    std::uint64_t after_these = 0;        // entries that sort behind this page
    std::string cursor;  // where the next page starts, "" = no more; `entries` may lack a name that
                         // vanished meanwhile
};

struct WriteOptions {
    bool overwrite = false;  // false: "already_exists" when anything has the name
    std::optional<FileStamp>
        expected;  // refuse with "changed_meanwhile" when the file is another one by now
};

// Content that is whole and waits for its name.
struct NamedFile {
    NewFile file;
    std::string path;
};

class Paths {
  public:
    Paths(
        std::shared_ptr<const Workspace> workspace,
        std::string cwd,
        Resolver resolver = Resolver::kernel
    )
        : workspace_(std::move(workspace)), cwd_(std::move(cwd)), resolver_(resolver) {}

    // Only what lies below this workdir, which is the current directory: anything else is
    // "path_escape". Links are followed inside it.
    [[nodiscard]] static Paths within(
        std::shared_ptr<const Workspace> workspace, const std::string& workdir_path
    );

    // The absolute guest path that `path` means, checked as text only.
    [[nodiscard]] base::Result<GuestPath> parse(std::string_view path) const;

    // A regular file, opened for reading. A FIFO, socket, device or directory is "not_regular_file"
    // at once.
    [[nodiscard]] base::Result<OpenFile> open_read(std::string_view path) const;
    // Links are followed.
    [[nodiscard]] base::Result<FileInfo> stat(std::string_view path) const;
    // A directory, opened for reading.
    [[nodiscard]] base::Result<base::Fd> open_directory(std::string_view path) const;
    // At most `limit` entries that sort behind the name `after` ("" = from the start), as bytes.
    // Memory is bounded by `limit`, however many there are. A name that `hidden` holds for is not
    // there.
    [[nodiscard]] base::Result<DirectoryPage> list_directory(
        std::string_view path,
        const std::string& after,
        std::size_t limit,
        const std::function<bool(std::string_view name)>& hidden = {}
    ) const;

    // Old or new content, never half (atomic_file.hpp). An existing file keeps its mode and, where
    // we may, its group; a new one has 0600 whatever the umask; missing directories are made 0700,
    // not through links. A link as the last part is followed inside the roots. True when the file
    // is new.
    [[nodiscard]] base::Result<bool> write_file(
        std::string_view path, std::string_view bytes, const WriteOptions& options
    ) const;

    // A new empty file for writing (0600); "already_exists" when anything has the name.
    [[nodiscard]] base::Result<base::Fd> create_file(std::string_view path) const;

    // A file without a name, seen by nobody until publish() links it to `path` (of the same root).
    // Directories are made at publishing. Error "file_error" where the file system has no such
    // files.
    [[nodiscard]] base::Result<base::Fd> create_unnamed_file(std::string_view path) const;
    [[nodiscard]] base::Result<void> publish(const base::Fd& file, std::string_view path) const;

    // For content that comes piece by piece, on any file system; its name comes last.
    [[nodiscard]] base::Result<NewFile> begin_file() const;
    // As write_file() with `overwrite`, but a link as the last part is refused. True: it is new.
    [[nodiscard]] base::Result<bool> replace_with(NewFile& file, std::string_view path) const;
    // All get their names, or none: "already_exists" when anything, a link too, has one of them.
    // Directories are not made.
    [[nodiscard]] base::Result<void> publish_all(std::vector<NamedFile>& files) const;

    // One directory, 0700; "already_exists" when anything has the name.
    [[nodiscard]] base::Result<void> make_directory(std::string_view path) const;
    // What has the name: a link itself, a directory with all that is in it. Errors: "is_root",
    // unavailable "not_removed" when the deadline passed or something may not be removed.
    [[nodiscard]] base::Result<void> remove(std::string_view path, base::Deadline deadline) const;

  private:
    [[nodiscard]] base::Result<Place> named_place(std::string_view path) const;

    std::shared_ptr<const Workspace> workspace_;
    std::string cwd_;
    Resolver resolver_;
    std::string within_;
};

// One regular file of a directory held open, never following a link, never blocking. Used by walks
// over a tree.
[[nodiscard]] base::Result<OpenFile> open_entry(
    int directory, const char* name, const std::string& shown
);

}  // namespace ars::fsmount
