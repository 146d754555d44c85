// The bytes of attachments. They are outside of every user's files until a thread has them: no tool
// reads or changes what waits, and what nobody asks for goes away. On disk before it is answered:
// a file of <data_dir>/attachments has a record, and a boot removes those that have none.
#pragma once

#include "base/async.hpp"
#include "base/log.hpp"
#include "base/offload.hpp"
#include "base/task_group.hpp"
#include "fsmount/paths.hpp"
#include "runtime/agents/agent.hpp"
#include "runtime/runs/attachments.hpp"

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace ars::runs {

class AttachmentService {
  public:
    // Borrowed; all outlive the service.
    struct Parts {
        base::asio::any_io_executor executor;
        store::Store& store;
        base::Offload& offload;
        const base::Log& log;
        std::function<base::Result<std::shared_ptr<fsmount::Workspace>>(const std::string& uid)>
            open_workspace;
        base::milliseconds keep;  // tmp objects, from their upload on
    };
    // Makes the directory and sweeps it: blocks.
    [[nodiscard]] static base::Result<std::unique_ptr<AttachmentService>> open(
        Parts parts, const std::string& directory
    );

    // Expiry. stop() comes before the end of a service that was started.
    void start();
    base::Task<void> stop();

    // Where an upload grows.
    [[nodiscard]] fsmount::Paths uploads() const;
    // A tmp object of what grew there; `name` is one part of a path, any bytes.
    base::Task<base::Result<Attachment>> keep(
        agents::User user, std::string name, fsmount::NewFile file
    );

    // For a thread of the caller's, as find_thread() gave it. The files are at their paths then.
    base::Task<base::Result<std::vector<Attachment>>> confirm(
        store::ThreadRecord thread, std::vector<std::string> ids
    );
    // Error conflict "attachment_in_use".
    base::Task<base::Result<void>> remove(store::ThreadRecord thread, std::string id);
    // Puts the thread's files at their paths, if they are not there yet.
    base::Task<base::Result<void>> place(std::string thread_id);

  private:
    explicit AttachmentService(Parts parts, std::shared_ptr<const fsmount::Workspace> blobs);
    base::Task<base::Result<void>> place_one(Attachment attachment, std::string existing);
    base::Task<void> look_again_and_again();
    base::Task<void> sweep();
    base::Task<void> drop_blob(std::string id);

    Parts parts_;
    std::shared_ptr<const fsmount::Workspace> blobs_;  // user-data of it: <data_dir>/attachments
    std::set<std::string> arriving_;                   // files whose records are on their way
    base::TaskGroup tasks_;
};

}  // namespace ars::runs
