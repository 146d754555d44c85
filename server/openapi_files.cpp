// Files: the same routes for a thread's directory and for all files of a user.
#include "server/dto_files.hpp"
#include "server/dto_projects.hpp"
#include "server/openapi.hpp"

namespace ars::server::openapi {

namespace {

struct Place {
    std::string path;
    std::string noun;  // of operation ids: "ThreadFile"
    bool of_thread;

    [[nodiscard]] Operation operation(
        Method method, std::string_view end, std::string_view verb, std::string_view doc
    ) const {
        Operation out(method, path + std::string(end), std::string(verb) + noun, doc);
        return of_thread && end != "/directory" && end != "/upload"
                   ? std::move(out).required_query("thread_id", text(), "Whose directory.")
                   : std::move(out);
    }
};

Schema entry() {
    return object(
        {{"path", text("Quoted as $'a\\xff' when it is no UTF-8.")},
         {"name", text()},
         {"is_dir", boolean()},
         {"kind", choice({"file", "directory", "symlink", "other"})},
         {"size", whole()},
         {"modified_at", time()},
         {"artifact_url", nullable(text())}}
    );
}

Schema form() {
    Schema out = object(
        {{"thread_id?", text("Of the thread's directory; or in the query.")},
         {"parent_path?", text("/")},
         {"file", text("Up to 50 of them; any name will do.")}}
    );
    return out;
}

// Of the workspace alone: what threads without a project have made for themselves.
Operation with_unbound(const Place& place, Operation operation) {
    return place.of_thread ? std::move(operation)
                           : std::move(operation).query(
                                 "include_unbound_project_dirs",
                                 boolean(),
                                 "Also directories of threads without a project; false."
                             );
}

void add_search(std::vector<Operation>& out, const Place& place) {
    out.push_back(
        with_unbound(place, place.operation(Method::get, "/search", "search", "Files by name."))
            .required_query("query", text(), "In the name; with a slash, in the path.")
            .query("include_hidden", boolean(), "Also in directories like .git; false.")
            .answers(200, object({{"entries", list(ref("FileEntry"))}, {"complete", boolean()}}))
            .fails({403, 404, 422, 503})
    );
}

void add_operations(std::vector<Operation>& out, const Place& place) {
    const Schema one = object({{"entry", ref("FileEntry")}});
    out.push_back(with_unbound(
                      place,
                      place.operation(Method::get, "/tree", "list", "What is in a directory.")
    )
                      .query("path", text(), "The directory; /.")
                      .query("after", text(), "`next` of the page before.")
                      .answers(
                          200,
                          object(
                              {{"entries", list(ref("FileEntry"))},
                               {"total", whole()},
                               {"next", nullable(text())}}
                          )
                      )
                      .fails({403, 404, 422, 503}));
    for (const auto& [end, verb] : {std::pair{"/file", "get"}, {"/download", "download"}}) {
        out.push_back(place.operation(Method::get, end, verb, "A file's bytes.")
                          .required_query("path", text(), "The file.")
                          .answers_bytes(200, "application/octet-stream", "The file.")
                          .fails({400, 403, 404, 413, 422, 503}));
    }
    out.push_back(place.operation(Method::put, "/file", "put", "Makes or replaces a file.")
                      .required_query("path", text(), "The file.")
                      .body_of("application/octet-stream", {})
                      .answers(200, one, "Replaced.")
                      .answers(201, one)
                      .fails({400, 403, 404, 413, 422, 503, 507}));
    out.push_back(place.operation(Method::del, "/file", "delete", "Removes a file or directory.")
                      .required_query("path", text(), "What goes, with all that is in it.")
                      .answers(200, object({{"success", {{"const", true}}}, {"path", text()}}))
                      .fails({400, 403, 404, 422, 503}));
    out.push_back(place.operation(Method::post, "/directory", "makeDirectoryOf", "Makes one.")
                      .body(ref("DirectoryRequest"))
                      .answers(201, one)
                      .fails({403, 404, 409, 503, 507}));
    out.push_back(place.operation(Method::post, "/upload", "upload", "All of them, or none.")
                      .body_of("multipart/form-data", form())
                      .answers(201, object({{"entries", list(ref("FileEntry"))}}))
                      .fails({400, 403, 404, 409, 413, 415, 422, 503, 507}));
}

}  // namespace

namespace {

void add_projects(Part& part) {
    part.schemas.emplace_back("NewProject", new_project_schema());
    part.schemas.emplace_back(
        "Project",
        object(
            {{"id", text()},
             {"uid", text()},
             {"name", text()},
             {"selection_status", constant("selectable")},
             {"directory_mode", constant("linked")},
             {"workdir_path", text("Below the workspace.")},
             {"created_at", time()},
             {"updated_at", time()}}
        )
    );
    part.operations.push_back(
        Operation(Method::get, "/api/projects", "listProjects", "Your projects, the oldest first.")
            .answers(200, list(ref("Project")))
    );
    part.operations.push_back(Operation(
                                  Method::post,
                                  "/api/projects",
                                  "createProject",
                                  "Gives a name to a directory for threads to work in."
    )
                                  .body(ref("NewProject"))
                                  .answers(200, ref("Project"))
                                  .fails({400, 403, 404, 409, 429, 503}));
}

}  // namespace

Part files_part() {
    Part part{"files", "A thread's directory, and all files of a user.", {}, {}};
    part.schemas = {{"FileEntry", entry()}, {"DirectoryRequest", directory_fields().schema()}};
    for (const Place& place :
         {Place{"/api/viewer/filesystem", "ThreadFile", true},
          Place{"/api/workspace", "WorkspaceFile", false}}) {
        add_operations(part.operations, place);
        add_search(part.operations, place);
    }
    part.operations.push_back(
        Operation(
            Method::get,
            "/api/mention/search",
            "searchMentions",
            "Files to mention in a message: the thread's, then others; the best matches first."
        )
            .required_query("query", text(), "In the path.")
            .query("thread_id", text(), "Absent: the workspace alone.")
            .answers(
                200,
                list(object(
                    {{"name", text()},
                     {"path", text("As tools know it.")},
                     {"is_dir", boolean()},
                     {"source", choice({"thread", "workspace"})}}
                ))
            )
            .fails({404, 422, 503})
    );
    add_projects(part);
    return part;
}

}  // namespace ars::server::openapi
