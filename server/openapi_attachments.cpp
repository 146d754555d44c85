// Files that come with messages, and those that agents hand over.
#include "server/dto_artifacts.hpp"
#include "server/dto_attachments.hpp"
#include "server/openapi.hpp"

namespace ars::server::openapi {

namespace {

constexpr std::string_view kId = "The thread.";

Schema attachment() {
    return object(
        {{"file_id", text()},
         {"file_name", text("Quoted as $'a\\xff' when it is no UTF-8.")},
         {"file_size", whole()},
         {"is_text", boolean()},
         {"status", choice({"tmp", "confirmed"})},
         {"thread_id", nullable(text())},
         {"path", nullable(text("Where tools find it."))},
         {"message_ids", list(text())},
         {"created_at", time()},
         {"expires_at", nullable(time())}}
    );
}

void add_artifacts(std::vector<Operation>& out) {
    out.push_back(Operation(
                      Method::get,
                      "/api/chat/thread/{id}/artifacts/{path}",
                      "getArtifact",
                      "A file by the path that agents write, slashes included."
    )
                      .path("id", kId)
                      .path("path", "home/gem/user-data/... or home/gem/skills/...")
                      .query("download", text(), "Taken and ignored: it is a download always.")
                      .answers_bytes(200, "application/octet-stream", "The file.")
                      .fails({400, 403, 404, 413, 503}));
    out.push_back(
        Operation(
            Method::post,
            "/api/chat/thread/{id}/artifacts/save",
            "saveArtifact",
            "Copies a file to /home/gem/user-data/saved_artifacts; a name that is taken gets a "
            "number."
        )
            .path("id", kId)
            .body(ref("SaveRequest"))
            .answers(
                201,
                object(
                    {{"path", text()}, {"name", text()}, {"size", whole()}, {"artifact_url", text()}
                    }
                )
            )
            .fails({400, 403, 404, 409, 413, 503, 507})
    );
}

}  // namespace

Part attachments_part() {
    Part part{
        "attachments", "Files that come with messages, and those that agents present.", {}, {}
    };
    const Schema all = object({{"attachments", list(ref("Attachment"))}});
    part.schemas = {
        {"Attachment", attachment()},
        {"ConfirmRequest", confirm_fields().schema()},
        {"ParseRequest", parse_fields().schema()},
        {"SaveRequest", save_fields().schema()},
    };
    std::vector<Operation>& out = part.operations;
    out.push_back(
        Operation(
            Method::post, "/api/chat/attachments/tmp", "uploadAttachment", "One file of 5 MiB."
        )
            .body_of("multipart/form-data", object({{"file", text("The file; any name will do.")}}))
            .answers(201, object({{"attachment", ref("Attachment")}}))
            .fails({413, 415, 422, 503, 507})
    );
    out.push_back(
        Operation(
            Method::post,
            "/api/chat/attachments/tmp/parse",
            "parseAttachment",
            "The beginning of a text file, as a model gets it: at most 32,000 characters."
        )
            .body(ref("ParseRequest"))
            .answers(200, object({{"file_id", text()}, {"text", text()}, {"is_cut", boolean()}}))
            .fails({404})
    );
    out.push_back(Operation(
                      Method::post,
                      "/api/chat/thread/{id}/attachments/confirm",
                      "confirmAttachments",
                      "Uploads become a thread's, and are put where its tools find them."
    )
                      .path("id", kId)
                      .body(ref("ConfirmRequest"))
                      .answers(200, all)
                      .fails({403, 404, 409, 503, 507}));
    out.push_back(Operation(
                      Method::get,
                      "/api/chat/thread/{id}/attachments",
                      "listAttachments",
                      "Of a sub-agent's thread: those of its root."
    )
                      .path("id", kId)
                      .answers(200, all)
                      .fails({404}));
    out.push_back(Operation(
                      Method::del,
                      "/api/chat/thread/{id}/attachments/{file_id}",
                      "deleteAttachment",
                      "With its file; not while a run or a waiting message may read it."
    )
                      .path("id", kId)
                      .path("file_id", "The attachment.")
                      .answers(200, object({{"deleted", {{"const", true}}}}))
                      .fails({404, 409, 503}));
    add_artifacts(out);
    return part;
}

}  // namespace ars::server::openapi
