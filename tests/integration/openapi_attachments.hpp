// The part of the walk over the API that is about attachments and artifacts.
#pragma once

#include "tests/integration/openapi_fixture.hpp"

#include <map>
#include <string>

namespace ars::tests {

class AttachmentWalk : public OpenApiFixture {
  protected:
    void walk_attachments();
};

inline void AttachmentWalk::walk_attachments() {
    const std::string thread = make_thread();
    const std::string form =
        "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"note.txt\"\r\n\r\n"
        "a note\r\n";
    const ApiCall upload{
        .operation = "uploadAttachment",
        .bytes = form + "--b--\r\n",
        .content_type = "multipart/form-data; boundary=b",
        .status = 201
    };
    const auto refused = [&](ApiCall call, const std::string& bytes, int status) {
        call.bytes = bytes;
        call.status = status;
        walk_->call(call);
    };
    const std::string id = text(walk_->call(upload).at("attachment"), "file_id");
    refused(upload, form + form + "--b--\r\n", 413);
    refused(upload, "--b--\r\n", 422);
    refused(upload, "no form", 422);
    walk_->call({.operation = "uploadAttachment", .body = json::object(), .status = 415});
    walk_->call({.operation = "parseAttachment", .body = {{"file_id", id}}});
    const std::map<std::string, std::string> at{{"id", thread}};
    walk_->call(
        {.operation = "confirmAttachments", .path = at, .body = {{"file_ids", json::array{id}}}}
    );
    walk_->call(
        {.operation = "confirmAttachments",
         .path = at,
         .body = {{"file_ids", json::array{"none"}}},
         .status = 404}
    );
    walk_->call(
        {.operation = "confirmAttachments",
         .path = {{"id", make_thread()}},
         .body = {{"file_ids", json::array{id}}},
         .status = 409}
    );
    const json::value listed = walk_->call({.operation = "listAttachments", .path = at});
    const std::string path = text(listed.at("attachments").at(0), "path");
    walk_->call(
        {.operation = "getArtifact",
         .path = {{"id", thread}, {"path", path}},
         .query = {{"download", ""}},
         .path_status = {{"path", 403}}}
    );
    const auto artifact = [&](const std::string& of, int status) {
        walk_->call(
            {.operation = "getArtifact", .path = {{"id", thread}, {"path", of}}, .status = status}
        );
    };
    artifact("/home/gem/user-data", 400);
    artifact("/home/gem/user-data/../x", 403);
    artifact("/home/gem/user-data/missing", 404);
    const auto save = [&](const std::string& of, int status) {
        walk_->call(
            {.operation = "saveArtifact", .path = at, .body = {{"path", of}}, .status = status}
        );
    };
    save(path, 201);
    save("/home/gem/user-data", 400);
    save("note.txt", 403);
    save("/home/gem/user-data/missing", 404);
    const json::value used = start(
        "say it", {{"meta", {{"attachment_file_ids", json::array{id}}}}, {"thread_id", thread}}
    );
    wait_for(text(used, "run_id"), "completed");
    walk_->call({.operation = "deleteAttachment", .path = {{"id", thread}, {"file_id", id}}});
}

}  // namespace ars::tests
