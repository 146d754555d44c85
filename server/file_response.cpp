#include "server/file_response.hpp"

#include "server/dto_files.hpp"
#include "server/http_error.hpp"

namespace ars::server {

using base::Result;

HttpResponse file_too_large() {
    return error_response(
        413,
        "file_too_large",
        "the file is over " + std::to_string(kDownloadBytes) + " bytes; let a tool split it"
    );
}

base::Task<HttpResponse> file_response(Api& api, fsmount::Paths paths, std::string guest) {
    const auto work = [paths = std::move(paths), guest] {
        auto opened = paths.open_read(guest);
        using Shared = std::shared_ptr<fsmount::OpenFile>;
        return opened ? Result<Shared>(std::make_shared<fsmount::OpenFile>(std::move(*opened)))
                      : Result<Shared>(std::unexpected(opened.error()));
    };
    auto file = co_await api.files.offload->run(work);
    if (!file) {
        co_return file_error_response(file.error());
    }
    if ((*file)->info.size > kDownloadBytes) {
        co_return file_too_large();
    }
    HttpResponse response;
    // Agents write what they like: no browser shall run it as a page of this server.
    response.content_type = "application/octet-stream";
    response.headers.emplace_back("X-Content-Type-Options", "nosniff");
    const std::string bytes = fsmount::unquote_path(guest).value_or(guest);
    response.headers.emplace_back("Content-Disposition", content_disposition(bytes));
    response.headers.emplace_back("Cache-Control", "no-store");
    response.stream_bytes = (*file)->info.size;
    response.stream = std::make_unique<FileBody>(*api.files.offload, std::move(*file));
    co_return response;
}

}  // namespace ars::server
