// Keys: attachment/<id> is the record, attachment-text/<id> its text, attachment-of/<thread>/<id>
// and attachment-blob/<user>/<id> say whose it is and where its bytes are.
#include "runtime/runs/attachments.hpp"

#include "base/clock.hpp"
#include "base/digest.hpp"
#include "fsmount/guest_path.hpp"
#include "fsmount/layout.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace ars::runs {

namespace json = boost::json;
using base::ErrorKind;
using base::fail;

namespace {

constexpr std::size_t kUses = 100;  // older ones are forgotten: their messages show it no more
constexpr std::string_view kBlobs = "attachment-blob/";

std::string record_key(std::string_view id) { return fmt::format("attachment/{}", id); }
std::string text_key(std::string_view id) { return fmt::format("attachment-text/{}", id); }
std::string thread_prefix(std::string_view thread) {
    return fmt::format("attachment-of/{}/", thread);
}
// A uid may be longer than a key of the store.
std::string blob_prefix(std::string_view uid) {
    return fmt::format("{}{}/", kBlobs, base::sha256_hex(uid));
}
std::string blob_key(const Attachment& attachment) {
    return blob_prefix(attachment.uid) + attachment.id;
}
std::string last_part(const std::string& key) { return key.substr(key.rfind('/') + 1); }

std::string encode(const Attachment& attachment) {
    json::array uses;
    for (const Attachment::Use& use : attachment.uses) {
        uses.push_back(json::array{use.request_id, use.message_id});
    }
    return json::serialize(json::object{
        {"uid", attachment.uid},
        {"name", attachment.name},
        {"size", attachment.size},
        {"is_text", attachment.is_text},
        {"is_cut", attachment.is_cut},
        {"created_ms", attachment.created_ms},
        {"expires_ms", attachment.expires_ms},
        {"thread_id", attachment.thread_id},
        {"path", attachment.path},
        {"is_placed", attachment.is_placed},
        {"is_copied", attachment.is_copied},
        {"uses", std::move(uses)}
    });
}

Attachment decode(std::string_view id, const std::string& text) {
    const json::value stored = json::parse(text);
    const auto string = [&stored](const char* key) {
        return std::string(stored.at(key).as_string());
    };
    Attachment out;
    out.id = id;
    out.uid = string("uid");
    out.name = string("name");
    out.size = stored.at("size").to_number<std::uint64_t>();
    out.is_text = stored.at("is_text").as_bool();
    out.is_cut = stored.at("is_cut").as_bool();
    out.created_ms = stored.at("created_ms").to_number<std::int64_t>();
    out.expires_ms = stored.at("expires_ms").to_number<std::int64_t>();
    out.thread_id = string("thread_id");
    out.path = string("path");
    out.is_placed = stored.at("is_placed").as_bool();
    out.is_copied = stored.at("is_copied").as_bool();
    for (const json::value& use : stored.at("uses").as_array()) {
        out.uses.push_back({std::string(use.at(0).as_string()), std::string(use.at(1).as_string())}
        );
    }
    return out;
}

void put(store::WriteTxn& txn, const Attachment& attachment) {
    txn.put_entry(record_key(attachment.id), encode(attachment));
    if (!attachment.thread_id.empty()) {
        txn.put_entry(thread_prefix(attachment.thread_id) + attachment.id, "");
    }
    if (attachment.is_placed) {
        txn.erase_entry(blob_key(attachment));
    } else {
        txn.put_entry(blob_key(attachment), "");
    }
}

// The id keeps apart what has the same name.
std::string path_of(const store::ThreadRecord& thread, const Attachment& attachment) {
    return fsmount::quote_path(fmt::format(
        "{}/uploads/{}/{}",
        fsmount::guest_workdir(thread.workdir_path),
        attachment.id,
        fsmount::unquote_path(attachment.name).value()
    ));
}

std::unexpected<base::Error> too_many(ErrorKind kind, std::string message) {
    return fail(kind, "too_many_attachments", std::move(message));
}

}  // namespace

std::string new_attachment_id() {
    constexpr std::size_t kDigits = 16;
    std::string id = base::random_uuid();
    std::erase(id, '-');
    return id.substr(0, kDigits);
}

std::optional<Attachment> find_attachment(const store::ReadTxn& txn, std::string_view id) {
    if (id.empty() || id.size() > store::kEntryKeyBytes / 2 || id.contains('/')) {
        return std::nullopt;
    }
    const auto stored = txn.entry(record_key(id));
    return stored ? std::optional(decode(id, *stored)) : std::nullopt;
}

std::vector<Attachment> attachments_of(const store::ReadTxn& txn, const std::string& thread_id) {
    std::vector<Attachment> out;
    for (const auto& entry : txn.entries(thread_prefix(thread_id))) {
        if (auto attachment = find_attachment(txn, last_part(entry.key))) {
            out.push_back(*std::move(attachment));
        }
    }
    std::ranges::sort(out, {}, [](const Attachment& one) {
        return std::pair(one.created_ms, one.id);
    });
    return out;
}

std::string attachment_text(const store::ReadTxn& txn, const std::string& id) {
    return txn.entry(text_key(id)).value_or("");
}

std::vector<std::string> unplaced_attachments(const store::ReadTxn& txn) {
    std::vector<std::string> out;
    for (const auto& entry : txn.entries(kBlobs)) {
        out.push_back(last_part(entry.key));
    }
    return out;
}

base::Result<void> put_attachment(
    store::WriteTxn& txn, const Attachment& attachment, std::string_view text
) {
    const std::string prefix = blob_prefix(attachment.uid);
    if (txn.entries(prefix, {}, kUnplacedAttachments).size() == kUnplacedAttachments) {
        return too_many(
            ErrorKind::exhausted,
            fmt::format(
                "{} uploaded files wait for a thread already: confirm them, or let them expire",
                kUnplacedAttachments
            )
        );
    }
    put(txn, attachment);
    if (attachment.is_text) {
        txn.put_entry(text_key(attachment.id), text);
    }
    return {};
}

void erase_attachment(store::WriteTxn& txn, const Attachment& attachment) {
    txn.erase_entry(record_key(attachment.id));
    txn.erase_entry(text_key(attachment.id));
    txn.erase_entry(blob_key(attachment));
    txn.erase_entry(thread_prefix(attachment.thread_id) + attachment.id);
}

bool note_placed(store::WriteTxn& txn, const std::string& id) {
    auto attachment = find_attachment(txn, id);
    if (!attachment) {
        return false;
    }
    attachment->is_placed = true;
    put(txn, *attachment);
    return true;
}

base::Result<std::vector<Attachment>> confirm_attachments(
    store::WriteTxn& txn, const store::ThreadRecord& thread, const std::vector<std::string>& ids
) {
    std::vector<Attachment> out;
    for (const std::string& id : ids) {
        auto found = find_attachment(txn, id);
        if (!found || (found->thread_id.empty() && found->expires_ms <= base::now_ms())) {
            return fail(
                ErrorKind::not_found,
                "attachment_not_found",
                fmt::format("no attachment \"{}\": it was never uploaded, or has expired", id)
            );
        }
        if (found->uid != thread.uid) {
            return fail(
                ErrorKind::forbidden,
                "attachment_of_another_user",
                fmt::format("attachment \"{}\" was uploaded by another user", id)
            );
        }
        if (found->thread_id.empty()) {
            found->thread_id = thread.id;
            found->expires_ms = 0;
            found->path = path_of(thread, *found);
            put(txn, *found);
        } else if (found->thread_id != thread.id) {
            return fail(
                ErrorKind::conflict,
                "attachment_in_another_thread",
                fmt::format("attachment \"{}\" belongs to another thread; upload it again", id)
            );
        }
        out.push_back(*std::move(found));
    }
    if (txn.entries(thread_prefix(thread.id), {}, kThreadAttachments + 1).size() >
        kThreadAttachments) {
        return too_many(
            ErrorKind::conflict,
            fmt::format("a thread has at most {} attachments; delete some", kThreadAttachments)
        );
    }
    return out;
}

base::Result<void> bind_attachments(
    store::WriteTxn& txn,
    const store::ThreadRecord& thread,
    const std::vector<std::string>& ids,
    const Attachment::Use& use
) {
    for (const std::string& id : ids) {
        auto bound = confirm_attachments(txn, thread, {id});
        if (!bound && bound.error().code != "too_many_attachments") {
            return fail(
                ErrorKind::invalid,
                "unknown_attachment",
                fmt::format("\"{}\" is no attachment of this thread and no upload of yours", id)
            );
        }
        if (!bound) {
            return std::unexpected(bound.error());
        }
        Attachment& attachment = bound->front();
        if (attachment.uses.size() == kUses) {
            attachment.uses.erase(attachment.uses.begin());
        }
        attachment.uses.push_back(use);
        put(txn, attachment);
    }
    return {};
}

void copy_attachments(
    store::WriteTxn& txn,
    const store::ThreadRecord& origin,
    const store::ThreadRecord& fork,
    const std::map<std::string, std::string>& messages
) {
    for (Attachment& attachment : attachments_of(txn, origin.id)) {
        std::erase_if(attachment.uses, [&messages](Attachment::Use& use) {
            const auto copied = messages.find(use.message_id);
            use.message_id = copied == messages.end() ? std::string() : copied->second;
            return use.message_id.empty();
        });
        if (attachment.uses.empty()) {
            continue;
        }
        const std::string text = attachment_text(txn, attachment.id);
        attachment.id = new_attachment_id();
        attachment.thread_id = fork.id;
        attachment.is_copied = true;
        put(txn, attachment);
        if (attachment.is_text) {
            txn.put_entry(text_key(attachment.id), text);
        }
    }
}

bool is_in_use(const store::ReadTxn& txn, const Attachment& attachment) {
    const bool awaited = std::ranges::any_of(attachment.uses, [&](const Attachment::Use& use) {
        const auto request = txn.request_by_id(use.request_id);
        return request && request->status == store::RequestStatus::queued;
    });
    return awaited || std::ranges::any_of(txn.open_runs(), [&](const store::RunNo no) {
               const auto run = txn.run(no);
               return run && run->scope_id == attachment.thread_id;
           });
}

}  // namespace ars::runs
