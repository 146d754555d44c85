#include "runtime/runs/attachment_service.hpp"

#include "base/clock.hpp"
#include "base/text.hpp"
#include "fsmount/layout.hpp"
#include "runtime/runs/projects.hpp"

#include <algorithm>
#include <cerrno>

#include <sys/stat.h>
#include <unistd.h>

namespace ars::runs {

using base::ErrorKind;
using base::fail;
using base::Result;
using fsmount::NewFile;
using fsmount::Paths;

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kNameBytes = 255;  // of one part of a path, in every file system we meet
constexpr std::size_t kPiece = 256 * base::limits::kKiB;
constexpr std::size_t kSweptBlobs = 100'000;
constexpr auto kRemoval = 10s;          // of one directory with one file
constexpr auto kShortestPause = 100ms;  // between two sweeps: a tenth of the time that tmp objects
constexpr auto kLongestPause = 600s;    // are kept, within these

Result<void> synced(int fd) {
    if (::fsync(fd) != 0) {
        return base::fail_errno("sync_failed", "fsync of an attachment", errno);
    }
    return {};
}

// The whole of `path`'s directory, so that the name is there after a power cut too.
Result<void> sync_directory(const Paths& paths, std::string_view path) {
    const auto directory = paths.open_directory(path);
    return directory ? synced(directory->get()) : std::unexpected(directory.error());
}

Result<std::string> read_at(int fd, std::uint64_t offset, std::size_t most) {
    std::string out(most, '\0');
    ssize_t size = 0;
    do {
        size = ::pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    } while (size < 0 && errno == EINTR);
    if (size < 0) {
        return base::fail_errno("read_failed", "pread of an attachment", errno);
    }
    out.resize(static_cast<std::size_t>(size));
    return out;
}

std::string_view head_of_characters(std::string_view text, std::size_t most) {
    std::size_t at = 0;
    for (; at < text.size(); ++at) {
        const bool begins = (static_cast<unsigned char>(text[at]) & 0xC0U) != 0x80U;
        if (begins && most-- == 0) {
            break;
        }
    }
    return text.substr(0, at);
}

struct Content {
    std::uint64_t size = 0;
    bool is_text = false;
    bool is_cut = false;
    std::string text;
};

Result<Content> content_of(int fd) {
    struct stat status{};
    if (::fstat(fd, &status) != 0) {
        return base::fail_errno("read_failed", "fstat of an attachment", errno);
    }
    Content out;
    out.size = static_cast<std::uint64_t>(status.st_size);
    auto head = read_at(fd, 0, 4 * (kAttachmentText + 1));  // a character has at most four bytes
    if (!head) {
        return std::unexpected(head.error());
    }
    // The head of a longer file may end inside of a character.
    const std::string_view whole =
        head->size() < out.size ? base::utf8_head(*head, head->size() - 1) : *head;
    out.is_text = !whole.contains('\0') && base::is_utf8(whole);
    if (out.is_text) {
        out.text = head_of_characters(whole, kAttachmentText);
        out.is_cut = out.text.size() < out.size;
    }
    return out;
}

Result<void> publish_blob(const Paths& blobs, NewFile& file, const std::string& id) {
    if (auto done = synced(file.descriptor()); !done) {
        return done;
    }
    std::vector<fsmount::NamedFile> one;
    one.push_back({std::move(file), id});
    if (auto published = blobs.publish_all(one); !published) {
        return published;
    }
    return sync_directory(blobs, fsmount::kUserData);
}

// What is at `path` already is what an earlier process got done of the same.
Result<void> copy_blob(
    const Paths& blobs, const std::string& id, const Paths& files, const std::string& path
) {
    const auto from = blobs.open_read(id);
    if (!from) {
        return std::unexpected(from.error());
    }
    auto to = files.begin_file();
    if (!to) {
        return std::unexpected(to.error());
    }
    for (std::uint64_t offset = 0; offset < from->info.size;) {
        const auto piece = read_at(from->fd.get(), offset, kPiece);
        if (!piece) {
            return std::unexpected(piece.error());
        }
        if (piece->empty()) {
            break;
        }
        if (auto written = to->write(*piece, path); !written) {
            return written;
        }
        offset += piece->size();
    }
    if (auto done = synced(to->descriptor()); !done) {
        return done;
    }
    if (auto put = files.replace_with(*to, path); !put) {
        return std::unexpected(put.error());
    }
    const std::string bytes = fsmount::unquote_path(path).value();
    return sync_directory(files, fsmount::quote_path(bytes.substr(0, bytes.rfind('/'))));
}

// Apart from a missing blob.
base::Error workdir_missing(base::Error error) {
    error.code = "workdir_missing";
    return error;
}

void remove_placed(const Paths& files, const Attachment& attachment) {
    const std::string bytes = fsmount::unquote_path(attachment.path).value();
    [[maybe_unused]] const auto gone = files.remove(
        fsmount::quote_path(bytes.substr(0, bytes.rfind('/'))), base::Deadline::after(kRemoval)
    );
}

std::vector<std::string> names_of(const Paths& blobs) {
    std::vector<std::string> out;
    if (const auto page = blobs.list_directory(fsmount::kUserData, "", kSweptBlobs)) {
        for (const fsmount::DirectoryEntry& entry : page->entries) {
            out.push_back(entry.name);
        }
    }
    return out;
}

// Of a process that was killed, or a caller who left, between a file and its record.
bool is_orphan(const store::Store& store, const std::string& name) {
    const auto known =
        store.read([&name](const store::ReadTxn& txn) { return find_attachment(txn, name); });
    return !known || known->is_placed;
}

class Arriving {
  public:
    Arriving(std::set<std::string>& all, const std::string& id)
        : all_(all), place_(all.insert(id).first) {}
    Arriving(const Arriving&) = delete;
    Arriving& operator=(const Arriving&) = delete;
    ~Arriving() { all_.erase(place_); }

  private:
    std::set<std::string>& all_;
    std::set<std::string>::iterator place_;
};

}  // namespace

AttachmentService::AttachmentService(Parts parts, std::shared_ptr<const fsmount::Workspace> blobs)
    : parts_(std::move(parts)), blobs_(std::move(blobs)), tasks_(parts_.executor) {}

Result<std::unique_ptr<AttachmentService>> AttachmentService::open(
    Parts parts, const std::string& directory
) {
    if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
        return base::fail_errno("attachments_unusable", "mkdir " + directory, errno);
    }
    auto opened = base::open_file(directory, O_PATH | O_DIRECTORY | O_NOFOLLOW);
    if (!opened) {
        return std::unexpected(opened.error());
    }
    auto blobs =
        std::make_shared<const fsmount::Workspace>(std::move(*opened), directory, base::Fd(), "");
    std::unique_ptr<AttachmentService> out(new AttachmentService(std::move(parts), std::move(blobs))
    );
    const Paths uploads = out->uploads();
    for (const std::string& name : names_of(uploads)) {
        if (is_orphan(out->parts_.store, name)) {
            [[maybe_unused]] const auto gone =
                uploads.remove(fsmount::quote_path(name), base::Deadline::after(kRemoval));
        }
    }
    return out;
}

Paths AttachmentService::uploads() const { return Paths(blobs_, std::string(fsmount::kUserData)); }

base::Task<Result<Attachment>> AttachmentService::keep(
    agents::User user, std::string name, NewFile file
) {
    if (name.size() > kNameBytes) {
        co_return fail(ErrorKind::invalid, "bad_file_name", "a file's name has at most 255 bytes");
    }
    Attachment made;
    made.id = new_attachment_id();
    const Arriving arriving(arriving_, made.id);
    const auto shared = std::make_shared<NewFile>(std::move(file));
    const auto work = [shared, blobs = uploads(), id = made.id]() -> Result<Content> {
        auto content = content_of(shared->descriptor());
        if (content) {
            if (auto published = publish_blob(blobs, *shared, id); !published) {
                return std::unexpected(published.error());
            }
        }
        return content;
    };
    const auto content = co_await parts_.offload.run(work);
    if (!content) {
        co_return std::unexpected(content.error());
    }
    made.uid = user.uid;
    made.name = fsmount::quote_path(name);
    made.size = content->size;
    made.is_text = content->is_text;
    made.is_cut = content->is_cut;
    made.created_ms = base::now_ms();
    made.expires_ms = made.created_ms + parts_.keep.count();
    std::function<Result<bool>(store::WriteTxn&)> change =
        [made, text = content->text](store::WriteTxn& txn) -> Result<bool> {
        auto put = put_attachment(txn, made, text);
        return put ? Result<bool>(true) : std::unexpected(put.error());
    };
    const auto written = co_await parts_.store.write<bool>(std::move(change));
    if (!written) {
        co_await drop_blob(made.id);
        co_return std::unexpected(written.error());
    }
    co_return made;
}

base::Task<Result<std::vector<Attachment>>> AttachmentService::confirm(
    store::ThreadRecord thread, std::vector<std::string> ids
) {
    std::function<Result<std::vector<Attachment>>(store::WriteTxn&)> change =
        [thread, ids](store::WriteTxn& txn) { return confirm_attachments(txn, thread, ids); };
    auto confirmed = co_await parts_.store.write<std::vector<Attachment>>(std::move(change));
    if (!confirmed) {
        co_return confirmed;
    }
    if (auto placed = co_await place(thread.id); !placed) {
        co_return std::unexpected(placed.error());
    }
    for (Attachment& attachment : *confirmed) {
        attachment.is_placed = true;
    }
    co_return confirmed;
}

base::Task<Result<void>> AttachmentService::remove(store::ThreadRecord thread, std::string id) {
    std::function<Result<Attachment>(store::WriteTxn&)> change = [thread, id](store::WriteTxn& txn
                                                                 ) -> Result<Attachment> {
        auto found = find_attachment(txn, id);
        if (!found || found->thread_id != thread.id) {
            return fail(
                ErrorKind::not_found,
                "attachment_not_found",
                "no attachment \"" + id + "\" in this thread"
            );
        }
        if (is_in_use(txn, *found)) {
            return fail(
                ErrorKind::conflict,
                "attachment_in_use",
                "a run or a waiting message of the thread may read it; delete it after them"
            );
        }
        erase_attachment(txn, *found);
        return *std::move(found);
    };
    auto workspace = parts_.open_workspace(thread.uid);
    if (!workspace) {
        co_return std::unexpected(workspace.error());
    }
    const auto erased = co_await parts_.store.write<Attachment>(std::move(change));
    if (!erased) {
        co_return std::unexpected(erased.error());
    }
    if (!erased->is_copied) {
        const Paths files(std::move(*workspace), std::string(fsmount::kUserData));
        const auto work = [files, gone = *erased] {
            remove_placed(files, gone);
            return true;
        };
        co_await parts_.offload.run(work);
    }
    co_await drop_blob(id);
    co_return Result<void>();
}

base::Task<Result<void>> AttachmentService::place(std::string thread_id) {
    std::vector<Attachment> all;
    std::string existing;  // a project's directory, which is never made
    parts_.store.read([&](const store::ReadTxn& txn) {
        all = attachments_of(txn, thread_id);
        std::erase_if(all, [](const Attachment& one) { return one.is_placed; });
        const auto thread = all.empty() ? std::nullopt : txn.thread_by_id(thread_id);
        if (thread && !project_of_thread(txn, *thread).empty()) {
            existing = fsmount::guest_workdir(thread->workdir_path);
        }
    });
    for (Attachment& attachment : all) {
        if (auto placed = co_await place_one(std::move(attachment), existing); !placed) {
            co_return placed;
        }
    }
    co_return Result<void>();
}

base::Task<Result<void>> AttachmentService::place_one(Attachment attachment, std::string existing) {
    auto workspace = parts_.open_workspace(attachment.uid);
    if (!workspace) {
        co_return std::unexpected(workspace.error());
    }
    const Paths files(std::move(*workspace), std::string(fsmount::kUserData));
    const auto copy = [blobs = uploads(), files, attachment, existing]() -> Result<void> {
        if (!existing.empty()) {
            if (const auto there = files.open_directory(existing); !there) {
                return std::unexpected(workdir_missing(there.error()));
            }
        }
        return copy_blob(blobs, attachment.id, files, attachment.path);
    };
    const auto copied = co_await parts_.offload.run(copy);
    // Placed by somebody else meanwhile, or restored from a backup, which has no files.
    const bool is_missing = !copied && copied.error().code == "not_found";
    if (!copied && !is_missing) {
        co_return std::unexpected(copied.error());
    }
    const bool is_lost = is_missing && parts_.store.read([&](const store::ReadTxn& txn) {
        const auto now = find_attachment(txn, attachment.id);
        return now && !now->is_placed;
    });
    if (is_lost) {
        parts_.log.warning("attachment_without_file", {{"attachment", attachment.id}});
    }
    std::function<Result<bool>(store::WriteTxn&)> change =
        [id = attachment.id](store::WriteTxn& txn) -> Result<bool> { return note_placed(txn, id); };
    const auto noted = co_await parts_.store.write<bool>(std::move(change));
    if (!noted) {
        co_return std::unexpected(noted.error());
    }
    if (!*noted) {
        const auto take_back = [files, attachment] {
            remove_placed(files, attachment);
            return true;
        };
        co_await parts_.offload.run(take_back);
    }
    co_await drop_blob(attachment.id);
    co_return Result<void>();
}

base::Task<void> AttachmentService::drop_blob(std::string id) {
    const auto work = [blobs = uploads(), id = fsmount::quote_path(id)] {
        return blobs.remove(id, base::Deadline::after(kRemoval));
    };
    [[maybe_unused]] const auto gone = co_await parts_.offload.run(work);
}

void AttachmentService::start() { tasks_.spawn(look_again_and_again()); }

base::Task<void> AttachmentService::stop() {
    co_await base::shield_from_cancellation();
    tasks_.cancel_all();
    try {
        co_await tasks_.join();
    } catch (const boost::system::system_error&) {
        // It was told to stop.
    }
}

base::Task<void> AttachmentService::look_again_and_again() {
    const auto pause =
        std::clamp<base::milliseconds>(parts_.keep / 10, kShortestPause, kLongestPause);
    for (;;) {
        co_await base::sleep_until(base::Deadline::after(pause));
        try {
            co_await sweep();
        } catch (const boost::system::system_error&) {
            throw;  // cancelled
        } catch (const std::exception& error) {
            parts_.log.error("attachment_expiry", {{"reason", error.what()}});
        }
    }
}

namespace {

// Nobody will ask for it any more. True when it was erased.
bool erase_forgotten(store::WriteTxn& txn, const std::string& id) {
    const auto found = find_attachment(txn, id);
    if (!found) {
        return false;
    }
    const auto thread = txn.thread_by_id(found->thread_id);
    const bool forgotten = found->thread_id.empty()
                               ? found->expires_ms <= base::now_ms()
                               : !thread || thread->status == store::ThreadStatus::deleted;
    if (forgotten) {
        erase_attachment(txn, *found);
    }
    return forgotten;
}

}  // namespace

base::Task<void> AttachmentService::sweep() {
    const std::vector<std::string> ids = parts_.store.read(unplaced_attachments);
    for (const std::string& id : ids) {
        const auto found = parts_.store.read([&id](const store::ReadTxn& txn) {
            return find_attachment(txn, id);
        });
        if (!found || (found->thread_id.empty() && found->expires_ms > base::now_ms())) {
            continue;
        }
        std::function<Result<bool>(store::WriteTxn&)> change =
            [id](store::WriteTxn& txn) -> Result<bool> { return erase_forgotten(txn, id); };
        const auto erased = co_await parts_.store.write<bool>(std::move(change));
        if (!erased) {
            parts_.log.warning("attachment_expiry", {{"reason", erased.error().message}});
            co_return;  // with the next round, perhaps
        }
        if (*erased) {
            co_await drop_blob(id);
            continue;
        }
        if (auto placed = co_await place(found->thread_id); !placed) {
            parts_.log.warning("attachment_not_placed", {{"reason", placed.error().message}});
        }
    }
    const auto list = [blobs = uploads()] { return names_of(blobs); };
    const std::vector<std::string> names = co_await parts_.offload.run(list);
    for (const std::string& name : names) {
        if (!arriving_.contains(name) && is_orphan(parts_.store, name)) {
            co_await drop_blob(name);
        }
    }
}

}  // namespace ars::runs
