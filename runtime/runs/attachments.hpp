// Files that a user sends along with messages, as records in the store's registry. One is uploaded
// for its user alone (a tmp object), is confirmed for a thread, and comes with the messages that
// name it. Its bytes are the business of attachment_service.hpp.
#pragma once

#include "base/result.hpp"
#include "runtime/store/store.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ars::runs {

inline constexpr std::size_t kUnplacedAttachments = 32;  // of one user: 160 MiB outside his files
inline constexpr std::size_t kThreadAttachments = 100;   // each is a line of the prompt
inline constexpr std::size_t kMessageAttachments = 20;
inline constexpr auto kAttachmentExpiry =
    std::chrono::hours(24);                             // of an uploaded file that no thread took
inline constexpr std::size_t kAttachmentText = 32'000;  // characters in the prompt of one message

struct Attachment {
    std::string id;
    std::string uid;
    std::string name;  // as quote_path() writes it
    std::uint64_t size = 0;
    bool is_text = false;  // its beginning is kept as text
    bool is_cut = false;   // the text does not end where the file does
    std::int64_t created_ms = 0;
    std::int64_t expires_ms = 0;  // 0 = never: a thread has it
    std::string thread_id;        // empty = a tmp object
    std::string path;             // in the thread's directory, quoted; empty = a tmp object
    bool is_placed = false;       // the file is at `path`
    bool is_copied = false;       // of a fork: the file is the origin's
    struct Use {
        std::string request_id;
        std::string message_id;
    };
    std::vector<Use> uses;  // messages that it came with, oldest first
};

// Not to be guessed.
[[nodiscard]] std::string new_attachment_id();
[[nodiscard]] std::optional<Attachment> find_attachment(
    const store::ReadTxn& txn, std::string_view id
);
// Oldest first. `thread_id` is a root thread's: its sub-agents read the same.
[[nodiscard]] std::vector<Attachment> attachments_of(
    const store::ReadTxn& txn, const std::string& thread_id
);
// At most kAttachmentText characters of its beginning; "" of one that is no text.
[[nodiscard]] std::string attachment_text(const store::ReadTxn& txn, const std::string& id);
// Those whose bytes are outside of their thread's directory, of all users.
[[nodiscard]] std::vector<std::string> unplaced_attachments(const store::ReadTxn& txn);

// A new tmp object. Error exhausted "too_many_attachments".
[[nodiscard]] base::Result<void> put_attachment(
    store::WriteTxn& txn, const Attachment& attachment, std::string_view text
);
// For good: an expired, a deleted one.
void erase_attachment(store::WriteTxn& txn, const Attachment& attachment);
// Its file is at `path` now. False: it was deleted meanwhile.
[[nodiscard]] bool note_placed(store::WriteTxn& txn, const std::string& id);

// Tmp objects of `uid` become attachments of the thread, those that are its already stay; all of
// them, or none. Errors: not_found "attachment_not_found", forbidden "attachment_of_another_user",
// conflict "attachment_in_another_thread", "too_many_attachments".
[[nodiscard]] base::Result<std::vector<Attachment>> confirm_attachments(
    store::WriteTxn& txn, const store::ThreadRecord& thread, const std::vector<std::string>& ids
);
// The same for a request's, which the message is to show. Whatever one of them lacks is invalid
// "unknown_attachment": whose it is instead is nobody's business here.
[[nodiscard]] base::Result<void> bind_attachments(
    store::WriteTxn& txn,
    const store::ThreadRecord& thread,
    const std::vector<std::string>& ids,
    const Attachment::Use& use
);
// A fork's messages show what the origin's did. `messages` has the new id of each that was copied.
// The files stay the origin's: it has the same directory.
void copy_attachments(
    store::WriteTxn& txn,
    const store::ThreadRecord& origin,
    const store::ThreadRecord& fork,
    const std::map<std::string, std::string>& messages
);
// Whether a queued request or a run that is not over may still read it.
[[nodiscard]] bool is_in_use(const store::ReadTxn& txn, const Attachment& attachment);

}  // namespace ars::runs
