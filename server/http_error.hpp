// Failures as HTTP: one mapping from error kinds to status codes, and one shape of error bodies:
// {"detail": {"code", "message", ...}}. Only an unknown path answers {"detail": "Not Found"}.
#pragma once

#include "base/document.hpp"
#include "base/result.hpp"
#include "server/http_message.hpp"

#include <boost/json/object.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace ars::server {

[[nodiscard]] int status_of(base::ErrorKind kind);

// `more` joins code and message inside "detail".
[[nodiscard]] HttpResponse error_response(
    int status, std::string_view code, std::string_view message, boost::json::object more = {}
);
// Adds what the status demands: Retry-After for 429 and 503, WWW-Authenticate for 401. The message
// of an `io` or `internal` error goes to the log only: it may name paths of the host.
[[nodiscard]] HttpResponse error_response(const base::Error& error);
// 429 with the time after which the same request is taken.
[[nodiscard]] HttpResponse too_many_requests(
    std::string_view code, std::string_view message, std::int64_t retry_after_seconds
);
// 422 with every fault of a request: {"code", "message", "faults": [{"path", "message",
// "remedy"}]}.
[[nodiscard]] HttpResponse faults_response(const std::vector<base::Fault>& faults);
// {"detail": "Not Found"}: no such path.
[[nodiscard]] HttpResponse no_such_path();

[[nodiscard]] HttpResponse json_response(const boost::json::value& body, int status = 200);

}  // namespace ars::server
