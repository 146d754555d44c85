#include "runtime/runs/thread_fork.hpp"

#include "runtime/runs/attachments.hpp"
#include "runtime/runs/projects.hpp"
#include "runtime/runs/run_records.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace ars::runs {

using base::ErrorKind;
using base::fail;

namespace {

// All of them are written in one transaction, which others wait for.
constexpr std::size_t kMostMessages = 20'000;

constexpr std::string_view kNotFinished =
    "Not finished: this thread was forked from another one before the call had a result.";

std::optional<store::CheckpointRecord> find_checkpoint(
    const store::ReadTxn& txn, store::ThreadNo thread, const std::string& id
) {
    return id.empty() ? txn.latest_checkpoint(thread) : txn.checkpoint_by_id(thread, id);
}

std::string origin_metadata(
    const store::ThreadRecord& origin, const store::CheckpointRecord& checkpoint
) {
    return boost::json::serialize(boost::json::object{
        {"forked_from",
         boost::json::object{{"thread_id", origin.id}, {"checkpoint_id", checkpoint.id}}}
    });
}

// The new id.
std::string copy_message(
    store::WriteTxn& txn, store::MessageRecord message, store::ThreadNo thread
) {
    message.seq = 0;
    message.id.clear();
    message.thread = thread;
    txn.add_message(message);
    return message.id;
}

}  // namespace

base::Result<store::ThreadRecord> write_fork(
    store::WriteTxn& txn, const store::ThreadRecord& origin, const ForkThread& request
) {
    const auto checkpoint = find_checkpoint(txn, origin.no, request.checkpoint_id);
    if (!checkpoint) {
        return fail(
            ErrorKind::not_found,
            "checkpoint_not_found",
            request.checkpoint_id.empty()
                ? std::string("this thread has no checkpoint yet")
                : fmt::format("no checkpoint \"{}\" in this thread", request.checkpoint_id)
        );
    }
    store::ThreadRecord fork;
    fork.uid = origin.uid;
    fork.agent_slug = origin.agent_slug;
    fork.title = request.title.empty() ? origin.title : request.title;
    fork.workdir_path = origin.workdir_path;
    fork.request_id = request.request_id;
    fork.metadata = origin_metadata(origin, *checkpoint);
    if (!request.request_id.empty()) {
        if (const auto known = txn.thread_by_request(origin.uid, request.request_id)) {
            if (known->metadata == fork.metadata && known->title == fork.title) {
                return *known;
            }
            return fail(
                ErrorKind::conflict,
                "request_id_conflict",
                "this request_id was used for a different request; use a new one"
            );
        }
    }
    std::vector<store::MessageRecord> messages = txn.messages(origin.no, 0, kMostMessages + 1);
    std::erase_if(messages, [&checkpoint](const store::MessageRecord& message) {
        return !store::belongs_to(message, *checkpoint);
    });
    if (messages.size() > kMostMessages) {
        return fail(
            ErrorKind::too_large,
            "thread_too_long",
            fmt::format("a thread of more than {} messages can't be forked", kMostMessages)
        );
    }
    txn.put_thread(fork);
    fork.root = fork.no;
    txn.put_thread(fork);
    put_project_of_thread(txn, fork.id, project_of_thread(txn, origin));
    std::map<std::string, std::string> copies;
    for (const store::MessageRecord& message : messages) {
        std::string copy = copy_message(txn, message, fork.no);
        if (message.role == store::Role::user) {
            copies[message.id] = std::move(copy);
        }
    }
    copy_attachments(txn, origin, fork, copies);
    for (const store::MessageRecord& result :
         synthetic_results(messages, checkpoint->run, kNotFinished)) {
        copy_message(txn, result, fork.no);
    }
    store::CheckpointRecord first = *checkpoint;
    first.seq = 0;
    first.id.clear();
    first.thread = fork.no;
    first.created_ms = 0;
    const auto copied = txn.messages(fork.no);
    first.message_head = copied.empty() ? 0 : copied.back().seq;
    txn.add_checkpoint(first);
    return fork;
}

}  // namespace ars::runs
