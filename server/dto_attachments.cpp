#include "server/dto_attachments.hpp"

#include "server/dto_runs.hpp"

#include <boost/json/array.hpp>

namespace ars::server {

namespace json = boost::json;

const base::Fields<ConfirmBody>& confirm_fields() {
    static const auto fields = base::Fields<ConfirmBody>{}.texts(
        "file_ids",
        &ConfirmBody::file_ids,
        {.required = true,
         .min = 1,
         .max = runs::kMessageAttachments,
         .doc = "Of uploads that become the thread's: all of them, or none."}
    );
    return fields;
}

const base::Fields<ParseBody>& parse_fields() {
    static const auto fields = base::Fields<ParseBody>{}.text(
        "file_id", &ParseBody::file_id, {.required = true, .min = 1, .doc = "Of an upload."}
    );
    return fields;
}

json::object attachment_to_json(const runs::Attachment& attachment) {
    const bool is_tmp = attachment.thread_id.empty();
    json::array messages;
    for (const runs::Attachment::Use& use : attachment.uses) {
        messages.emplace_back(use.message_id);
    }
    return {
        {"file_id", attachment.id},
        {"file_name", attachment.name},
        {"file_size", attachment.size},
        {"is_text", attachment.is_text},
        {"status", is_tmp ? "tmp" : "confirmed"},
        {"thread_id", is_tmp ? json::value() : json::value(attachment.thread_id)},
        {"path", is_tmp ? json::value() : json::value(attachment.path)},
        {"message_ids", std::move(messages)},
        {"created_at", time_to_json(attachment.created_ms)},
        {"expires_at", time_to_json(attachment.expires_ms)}
    };
}

}  // namespace ars::server
