// /api/chat/.../attachments: files that a user sends along with messages.
#include "server/dto_attachments.hpp"
#include "server/dto_files.hpp"
#include "server/file_scope.hpp"
#include "server/file_upload.hpp"
#include "server/http_error.hpp"
#include "server/json_body.hpp"
#include "server/multipart.hpp"
#include "server/router.hpp"

namespace ars::server {

namespace {

constexpr std::uint64_t kFormOverhead = 64 * base::limits::kKiB;  // fields, names, boundaries

HttpResponse list_response(const std::vector<runs::Attachment>& attachments) {
    boost::json::array list;
    for (const runs::Attachment& attachment : attachments) {
        list.push_back(attachment_to_json(attachment));
    }
    return json_response({{"attachments", std::move(list)}});
}

// Sub-agents have none of their own.
std::expected<store::ThreadRecord, HttpResponse> root_thread(
    const Api& api, const HttpRequest& request
) {
    auto thread = api.runs.find_thread(request.user, request.params[0]);
    if (!thread) {
        return std::unexpected(error_response(thread.error()));
    }
    if (thread->parent != 0) {
        return std::unexpected(error_response(
            409,
            "thread_is_subagent",
            "this is a sub-agent's thread: it reads the attachments of the thread that it works for"
        ));
    }
    return *std::move(thread);
}

base::Task<HttpResponse> upload_tmp(Api& api, const HttpRequest& request) {
    const auto boundary = multipart_boundary(request.header("content-type").value_or(""));
    if (!boundary) {
        co_return error_response(
            415, "unsupported_media_type", "send the file as multipart/form-data"
        );
    }
    auto form = co_await receive_form(
        *request.peer,
        *boundary,
        api.attachments.uploads(),
        *api.files.offload,
        {.files = 1, .file_bytes = kAttachmentBytes}
    );
    if (!form) {
        co_return file_error_response(form.error());
    }
    if (form->files.empty()) {
        co_return faults_response({{"/file", "is missing", "send one file"}});
    }
    UploadedFile& file = form->files.front();
    const auto kept =
        co_await api.attachments.keep(request.user, std::move(file.name), std::move(file.file));
    co_return kept ? json_response({{"attachment", attachment_to_json(*kept)}}, 201)
                   : file_error_response(kept.error());
}

HttpResponse parse_tmp(Api& api, const HttpRequest& request) {
    auto body = read_body(request, parse_fields());
    if (!body) {
        return std::move(body.error());
    }
    return api.runs.store().read([&](const store::ReadTxn& txn) {
        const auto found = runs::find_attachment(txn, body->file_id);
        if (!found) {
            return error_response(404, "attachment_not_found", "no such upload, or it has expired");
        }
        if (found->uid != request.user.uid) {
            return error_response(
                403, "attachment_of_another_user", "this file was uploaded by another user"
            );
        }
        if (!found->is_text) {
            return error_response(
                422, "not_text", "this file is no UTF-8 text; an agent can open it with its tools"
            );
        }
        return json_response(
            {{"file_id", found->id},
             {"text", runs::attachment_text(txn, found->id)},
             {"is_cut", found->is_cut}}
        );
    });
}

base::Task<HttpResponse> confirm(Api& api, const HttpRequest& request) {
    auto body = read_body(request, confirm_fields());
    if (!body) {
        co_return std::move(body.error());
    }
    auto thread = root_thread(api, request);
    if (!thread) {
        co_return std::move(thread.error());
    }
    if (auto workspace = workspace_of(api, request); !workspace) {
        co_return std::move(workspace.error());
    }
    const auto confirmed =
        co_await api.attachments.confirm(std::move(*thread), std::move(body->file_ids));
    co_return confirmed ? list_response(*confirmed) : file_error_response(confirmed.error());
}

HttpResponse list_attachments(Api& api, const HttpRequest& request) {
    const auto thread = api.runs.find_thread(request.user, request.params[0]);
    if (!thread) {
        return error_response(thread.error());
    }
    return api.runs.store().read([&thread](const store::ReadTxn& txn) {
        const auto root = thread->parent != 0 ? txn.thread(thread->root) : std::nullopt;
        return list_response(runs::attachments_of(txn, root ? root->id : thread->id));
    });
}

base::Task<HttpResponse> delete_attachment(Api& api, const HttpRequest& request) {
    auto thread = root_thread(api, request);
    if (!thread) {
        co_return std::move(thread.error());
    }
    if (auto workspace = workspace_of(api, request); !workspace) {
        co_return std::move(workspace.error());
    }
    const auto removed = co_await api.attachments.remove(std::move(*thread), request.params[1]);
    co_return removed ? json_response({{"deleted", true}}) : error_response(removed.error());
}

}  // namespace

void add_attachment_routes(Router& router) {
    router.add(
        Method::post,
        "/api/chat/attachments/tmp",
        BodyHandler{upload_tmp, kAttachmentBytes + kFormOverhead}
    );
    router.add(Method::post, "/api/chat/attachments/tmp/parse", parse_tmp);
    router.add(Method::post, "/api/chat/thread/{id}/attachments/confirm", confirm);
    router.add(Method::get, "/api/chat/thread/{id}/attachments", list_attachments);
    router.add(Method::del, "/api/chat/thread/{id}/attachments/{file_id}", delete_attachment);
}

}  // namespace ars::server
