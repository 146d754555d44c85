// How a model is told of the files that a user sent along: with the message that they came with,
// the text of text files included, or in the system prompt where no message of the thread has them.
#pragma once

#include "runtime/store/store.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace ars::runs {

struct PromptAttachment {
    std::string path;  // quoted, absolute
    std::uint64_t size = 0;
    bool is_text = false;
    bool is_cut = false;
    std::string text;                   // empty where no message of the run's thread shows it
    std::vector<std::string> messages;  // ids, of this thread and of others
};

// Of the run's conversation, so that sub-agents see their root's; not those that came with messages
// that still wait.
[[nodiscard]] std::vector<PromptAttachment> prompt_attachments(
    const store::ReadTxn& txn, const store::RunRecord& run
);

// The text of a user's message with the files that came with it: at most kAttachmentText characters
// of theirs, the first ones' first.
[[nodiscard]] std::string with_attachments(
    const store::MessageRecord& message, const std::vector<PromptAttachment>& attachments
);

// For the system prompt: the files that no message of `history` shows; "" when there are none.
[[nodiscard]] std::string attachment_section(
    const std::vector<store::MessageRecord>& history,
    const std::vector<PromptAttachment>& attachments
);

}  // namespace ars::runs
