#include "server/file_upload.hpp"

#include "base/limits.hpp"
#include "fsmount/guest_path.hpp"
#include "server/multipart.hpp"

#include <algorithm>

namespace ars::server {

namespace {

constexpr std::size_t kFieldBytes = 16 * base::limits::kKiB;  // a path in the longest of its forms
constexpr int kFields = 16;

// Some clients send the path that the file has at theirs.
base::Result<std::string> file_name(std::string_view sent) {
    const std::string name(sent.substr(sent.rfind('/') + 1));
    if (name.empty() || name == "." || name == ".." || name.find('\0') != std::string::npos) {
        return base::fail(
            base::ErrorKind::invalid,
            "bad_file_name",
            "a file of the form has no usable name: send filename=\"report.md\""
        );
    }
    return name;
}

base::Task<base::Result<fsmount::NewFile>> receive_file(
    MultipartReader& form, fsmount::Paths paths, base::Offload& offload, std::uint64_t most
) {
    const auto begin = [paths] { return paths.begin_file(); };
    auto begun = co_await offload.run(begin);
    if (!begun) {
        co_return std::unexpected(begun.error());
    }
    FileSink sink(offload, std::move(*begun));
    std::uint64_t size = 0;
    for (;;) {
        const auto piece = co_await form.read();
        if (!piece) {
            co_return std::unexpected(piece.error());
        }
        if (piece->empty()) {
            co_return sink.take();
        }
        size += piece->size();
        if (size > most) {
            co_return base::fail(
                base::ErrorKind::too_large,
                "file_too_large",
                "a file of the form is over " + std::to_string(most) + " bytes"
            );
        }
        if (auto written = co_await sink.write(std::string(*piece)); !written) {
            co_return std::unexpected(written.error());
        }
    }
}

}  // namespace

base::Task<base::Result<UploadForm>> receive_form(
    HttpPeer& peer,
    std::string boundary,
    fsmount::Paths paths,
    base::Offload& offload,
    UploadBounds bounds
) {
    MultipartReader form(peer, boundary);
    UploadForm out;
    int fields = 0;
    for (;;) {
        const auto part = co_await form.next_part();
        if (!part) {
            co_return std::unexpected(part.error());
        }
        if (!*part) {
            co_return out;
        }
        if (!(*part)->filename) {
            auto value = co_await form.read_whole(kFieldBytes);
            if (!value) {
                co_return std::unexpected(value.error());
            }
            if (++fields > kFields) {
                co_return base::fail(
                    base::ErrorKind::too_large, "too_many_fields", "the form has too many fields"
                );
            }
            if ((*part)->name == "thread_id") {
                out.thread_id = std::move(*value);
            } else if ((*part)->name == "parent_path") {
                out.parent_path = std::move(*value);
            }
            continue;
        }
        auto name = file_name(*(*part)->filename);
        if (!name) {
            co_return std::unexpected(name.error());
        }
        if (out.files.size() == bounds.files) {
            co_return base::fail(
                base::ErrorKind::too_large,
                "too_many_files",
                "one upload has at most " + std::to_string(bounds.files) + " files"
            );
        }
        if (std::ranges::find(out.files, *name, &UploadedFile::name) != out.files.end()) {
            co_return base::fail(
                base::ErrorKind::conflict,
                "duplicate_name",
                "two files of the form are named " + fsmount::quote_path(*name)
            );
        }
        auto file = co_await receive_file(form, paths, offload, bounds.file_bytes);
        if (!file) {
            co_return std::unexpected(file.error());
        }
        out.files.push_back({std::move(*name), std::move(*file)});
    }
}

}  // namespace ars::server
