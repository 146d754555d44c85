// The form of an upload: its fields in any order, its files on disk without names.
#pragma once

#include "server/file_transfer.hpp"
#include "server/http_limits.hpp"

#include <string>
#include <vector>

namespace ars::server {

struct UploadedFile {
    std::string name;  // one part of a path, any bytes
    fsmount::NewFile file;
};

struct UploadForm {
    std::string thread_id;
    std::string parent_path;
    std::vector<UploadedFile> files;
};

struct UploadBounds {
    std::size_t files = kUploadFiles;
    std::uint64_t file_bytes = kUploadBytes;
};

// `paths` is anything in the user's workspace. Errors: those of the body and its form, of the disk,
// invalid "bad_file_name", conflict "duplicate_name", too_large "too_many_files",
// "file_too_large".
base::Task<base::Result<UploadForm>> receive_form(
    HttpPeer& peer,
    std::string boundary,
    fsmount::Paths paths,
    base::Offload& offload,
    UploadBounds bounds = {}
);

}  // namespace ars::server
