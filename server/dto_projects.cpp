#include "server/dto_projects.hpp"

#include "base/fields.hpp"
#include "base/text.hpp"
#include "server/dto_files.hpp"
#include "server/dto_runs.hpp"
#include "server/http_error.hpp"
#include "server/json_body.hpp"

namespace ars::server {

namespace json = boost::json;

namespace {

constexpr std::int64_t kNameBytes = 255;
constexpr std::int64_t kRequestIdBytes = 128;
constexpr std::int64_t kPathBytes = 4096;

enum class WorkdirMode : std::uint8_t { linked };

struct WorkdirBody {
    WorkdirMode mode = WorkdirMode::linked;
    std::string path;
};

struct ProjectBody {
    std::string request_id;
    std::string name;
    WorkdirBody workdir;
};

const base::Fields<WorkdirBody>& workdir_fields() {
    static const auto fields =
        base::Fields<WorkdirBody>{}
            .choice(
                "mode",
                &WorkdirBody::mode,
                {{"linked", WorkdirMode::linked}},
                {.required = true, .doc = "A directory that is there, and is never made."}
            )
            .text(
                "path",
                &WorkdirBody::path,
                {.required = true,
                 .min = 1,
                 .max = kPathBytes,
                 .doc = "Below the workspace, not itself; no link."}
            );
    return fields;
}

const base::Fields<ProjectBody>& project_fields() {
    static const auto fields =
        base::Fields<ProjectBody>{}
            .text(
                "request_id",
                &ProjectBody::request_id,
                {.required = true,
                 .min = 1,
                 .max = kRequestIdBytes,
                 .doc = "The same id gives the same project."}
            )
            .text("name", &ProjectBody::name, {.required = true, .min = 1, .max = kNameBytes})
            .object("workdir", &ProjectBody::workdir, workdir_fields(), {.required = true});
    return fields;
}

}  // namespace

json::object new_project_schema() { return project_fields().schema(); }

std::expected<runs::Project, HttpResponse> read_new_project(const HttpRequest& request) {
    auto body = read_body(request, project_fields());
    if (!body) {
        return std::unexpected(std::move(body.error()));
    }
    runs::Project out;
    out.uid = request.user.uid;
    out.request_id = std::move(body->request_id);
    out.name = base::trim(body->name);
    if (out.name.empty()) {
        return std::unexpected(faults_response({{"/name", "must not be blank", ""}}));
    }
    auto path = scope_path(body->workdir.path);
    if (!path) {
        return std::unexpected(file_error_response(path.error()));
    }
    if (!base::is_utf8(*path)) {
        return std::unexpected(faults_response({{"/workdir/path", "must be UTF-8", ""}}));
    }
    out.workdir_path = std::move(*path);
    if (out.workdir_path.ends_with('/')) {
        out.workdir_path.pop_back();
    }
    if (out.workdir_path.empty()) {
        return std::unexpected(error_response(
            400, "is_root", "a project has a directory of the workspace, not the workspace itself"
        ));
    }
    return out;
}

json::object project_to_json(const runs::Project& project) {
    return {
        {"id", project.id},
        {"uid", project.uid},
        {"name", project.name},
        {"selection_status", "selectable"},
        {"directory_mode", "linked"},
        {"workdir_path", project.workdir_path},
        {"created_at", time_to_json(project.created_ms)},
        {"updated_at", time_to_json(project.created_ms)}
    };
}

}  // namespace ars::server
