// Moving a file's bytes between a connection and the disk, a piece at a time: whatever its size, a
// transfer holds one piece in memory, and the disk is touched on the threads for file work only.
#pragma once

#include "base/offload.hpp"
#include "fsmount/paths.hpp"
#include "server/http_message.hpp"

#include <functional>
#include <memory>
#include <string>

namespace ars::server {

// The directories of users, and the threads that may block on them. Both outlive every request.
struct FileAccess {
    std::function<base::Result<std::shared_ptr<fsmount::Workspace>>(const std::string& uid)>
        workspace_of;
    base::Offload* offload = nullptr;
};

// The content of an open file as a response body. A file that shrinks meanwhile ends the connection
// early: the reader sees fewer bytes than announced.
class FileBody final : public StreamBody {
  public:
    FileBody(base::Offload& offload, std::shared_ptr<const fsmount::OpenFile> file)
        : offload_(offload), file_(std::move(file)) {}
    base::Task<void> run(StreamWriter& writer) override;

  private:
    base::Offload& offload_;
    std::shared_ptr<const fsmount::OpenFile> file_;
};

// A file that is filled from a request.
class FileSink {
  public:
    FileSink(base::Offload& offload, fsmount::NewFile file)
        : offload_(offload), file_(std::make_shared<fsmount::NewFile>(std::move(file))) {}
    base::Task<base::Result<void>> write(std::string bytes);
    // When nothing is written any more.
    [[nodiscard]] fsmount::NewFile take() { return std::move(*file_); }

  private:
    base::Offload& offload_;
    std::shared_ptr<fsmount::NewFile> file_;
};

}  // namespace ars::server
