#include "server/request_stream.hpp"

#include "server/dto_requests.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace ars::server {

namespace json = boost::json;

namespace {

void append_frame(std::string& out, std::string_view event, const json::object& data) {
    out += "event: ";
    out += event;
    out += "\ndata: ";
    out += json::serialize(data);
    out += "\n\n";
}

}  // namespace

base::Task<bool> RequestEventStream::wait(base::Deadline deadline) {
    return api_.runs.requests().wait(request_.thread, deadline);
}

void RequestEventStream::append_failure(std::string& out) {
    append_frame(out, "error", json::parse(kStoreFailure).as_object());
}

bool RequestEventStream::gather(const store::ReadTxn& txn, std::string& out) {
    if (request_.no != 0) {
        request_ = txn.request(request_.no).value();
    }
    json::object data{{"request_id", request_.request_id}};
    if (request_.status == store::RequestStatus::queued) {
        const std::size_t position = runs::queue_position(txn, request_);
        if (position != shown_position_) {
            shown_position_ = position;
            data["status"] = "queued";
            data["position"] = position;
            append_frame(out, "queued", data);
        }
        return false;
    }
    if (request_.status == store::RequestStatus::dispatched) {
        const store::RunRecord run = txn.run(request_.run).value();
        data["run_id"] = run.id;
        data["stream_url"] = run_events_url(run);
        append_frame(out, "run_created", data);
        return true;
    }
    data["status"] = store::to_string(request_.status);
    if (!request_.error_type.empty()) {
        data["error_type"] = request_.error_type;
        data["error_message"] = request_.error_message;
    }
    append_frame(out, store::to_string(request_.status), data);
    return true;
}

}  // namespace ars::server
