// POST /api/agent/runs with `resume`: a person's answers to an interrupted run.
#pragma once

#include "runtime/runs/run_manager.hpp"
#include "server/http_message.hpp"

#include <boost/json/array.hpp>

#include <expected>

namespace ars::server {

// True when the body asks for a resume and not for a new run.
[[nodiscard]] bool is_resume(const HttpRequest& request);

struct ResumeRequest {
    runs::ResumeRun resume;
    // Known keys that a resume has no use for: the interrupted run's own values count.
    boost::json::array not_applied;
};
[[nodiscard]] std::expected<ResumeRequest, HttpResponse> read_resume_request(
    const HttpRequest& request
);
[[nodiscard]] boost::json::object resume_request_schema();

}  // namespace ars::server
