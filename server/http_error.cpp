#include "server/http_error.hpp"

#include "base/fields.hpp"
#include "base/text.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

namespace ars::server {

namespace {

// Seconds after which trying again makes sense: runs end within seconds to minutes, and a client
// that comes too early only gets the same answer.
constexpr std::string_view kRetryAfter = "2";

}  // namespace

int status_of(base::ErrorKind kind) {
    switch (kind) {
        case base::ErrorKind::invalid:
            return 422;
        case base::ErrorKind::unauthorized:
            return 401;
        case base::ErrorKind::forbidden:
            return 403;
        case base::ErrorKind::not_found:
            return 404;
        case base::ErrorKind::conflict:
            return 409;
        case base::ErrorKind::too_large:
            return 413;
        case base::ErrorKind::exhausted:
            return 429;
        case base::ErrorKind::timeout:
            return 504;
        case base::ErrorKind::cancelled:
            return 409;
        case base::ErrorKind::unavailable:
            return 503;
        case base::ErrorKind::io:
            return 500;
        case base::ErrorKind::internal:
            return 500;
    }
    return 500;
}

HttpResponse json_response(const boost::json::value& body, int status) {
    HttpResponse response;
    response.status = status;
    response.body = boost::json::serialize(body);
    return response;
}

HttpResponse error_response(
    int status, std::string_view code, std::string_view message, boost::json::object more
) {
    boost::json::object detail;
    detail["code"] = code;
    // It may name what the client sent, which may be any bytes; the answer is UTF-8.
    detail["message"] = base::is_utf8(message) ? std::string(message) : base::to_utf8(message).text;
    for (auto& entry : more) {
        detail[entry.key()] = std::move(entry.value());
    }
    boost::json::object body;
    body["detail"] = std::move(detail);
    HttpResponse response = json_response(body, status);
    if (status == 401) {
        response.headers.emplace_back("WWW-Authenticate", "Bearer");
    } else if (status == 429 || status == 503) {
        response.headers.emplace_back("Retry-After", kRetryAfter);
    }
    return response;
}

HttpResponse error_response(const base::Error& error) {
    const int status = status_of(error.kind);
    if (error.kind != base::ErrorKind::internal && error.kind != base::ErrorKind::io) {
        return error_response(status, error.code, error.message);
    }
    HttpResponse response =
        error_response(status, error.code, "the server could not do this; its log has the reason");
    response.log_note = error.code + ": " + error.message;
    return response;
}

HttpResponse too_many_requests(
    std::string_view code, std::string_view message, std::int64_t retry_after_seconds
) {
    HttpResponse response = error_response(429, code, message);
    for (auto& [name, value] : response.headers) {
        if (name == "Retry-After") {
            value = std::to_string(retry_after_seconds);
        }
    }
    return response;
}

HttpResponse faults_response(const std::vector<base::Fault>& faults) {
    boost::json::array list;
    for (const base::Fault& fault : faults) {
        boost::json::object entry;
        entry["path"] = fault.path;
        entry["message"] = fault.message;
        if (!fault.remedy.empty()) {
            entry["remedy"] = fault.remedy;
        }
        list.push_back(std::move(entry));
    }
    const base::Error error = base::faults_error("invalid_request", faults);
    boost::json::object more;
    more["faults"] = std::move(list);
    return error_response(422, error.code, error.message, std::move(more));
}

HttpResponse no_such_path() {
    HttpResponse response;
    response.status = 404;
    response.body = R"({"detail":"Not Found"})";
    return response;
}

}  // namespace ars::server
