#include "runtime/runs/attachment_prompt.hpp"

#include "runtime/runs/attachments.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ars::runs {

namespace {

bool waits(const store::ReadTxn& txn, const Attachment& attachment) {
    return !attachment.uses.empty() &&
           std::ranges::all_of(attachment.uses, [&txn](const Attachment::Use& use) {
               const auto request = txn.request_by_id(use.request_id);
               return request && request->status == store::RequestStatus::queued;
           });
}

bool came_with(const PromptAttachment& attachment, const std::string& message) {
    return std::ranges::find(attachment.messages, message) != attachment.messages.end();
}

std::size_t characters(std::string_view text) {
    return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    }));
}

}  // namespace

std::vector<PromptAttachment> prompt_attachments(
    const store::ReadTxn& txn, const store::RunRecord& run
) {
    std::vector<PromptAttachment> out;
    for (const Attachment& attachment : attachments_of(txn, run.scope_id)) {
        if (waits(txn, attachment)) {
            continue;
        }
        PromptAttachment& shown = out.emplace_back();
        shown.path = attachment.path;
        shown.size = attachment.size;
        shown.is_text = attachment.is_text;
        shown.is_cut = attachment.is_cut;
        for (const Attachment::Use& use : attachment.uses) {
            shown.messages.push_back(use.message_id);
        }
        const bool is_shown = run.type != store::RunType::subagent && !shown.messages.empty();
        if (is_shown && attachment.is_text) {
            shown.text = attachment_text(txn, attachment.id);
        }
    }
    return out;
}

std::string with_attachments(
    const store::MessageRecord& message, const std::vector<PromptAttachment>& attachments
) {
    std::string out = message.content;
    std::size_t room = kAttachmentText;
    for (const PromptAttachment& attachment : attachments) {
        if (!came_with(attachment, message.id)) {
            continue;
        }
        const std::size_t length = characters(attachment.text);
        const bool fits = attachment.is_text && length <= room;
        if (!fits) {
            out += fmt::format(
                "\n\n[Attached file {} ({} bytes){}]",
                attachment.path,
                attachment.size,
                attachment.is_text ? "; read it with your tools" : ""
            );
            continue;
        }
        room -= length;
        out += fmt::format(
            "\n\n[Attached file {} ({} bytes){}]\n{}\n[End of attached file]",
            attachment.path,
            attachment.size,
            attachment.is_cut ? "; its beginning, read the rest with your tools:" : ":",
            attachment.text
        );
    }
    return out;
}

std::string attachment_section(
    const std::vector<store::MessageRecord>& history,
    const std::vector<PromptAttachment>& attachments
) {
    std::string out;
    for (const PromptAttachment& attachment : attachments) {
        const bool is_shown = std::ranges::any_of(history, [&](const store::MessageRecord& one) {
            return one.role == store::Role::user && came_with(attachment, one.id);
        });
        if (!is_shown) {
            out += fmt::format("- {} ({} bytes)\n", attachment.path, attachment.size);
        }
    }
    return out.empty() ? out
                       : "\n\n# Attached files\nThe user attached these files to the conversation; "
                         "read them with your tools when they matter:\n" +
                             out;
}

}  // namespace ars::runs
