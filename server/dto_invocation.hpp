// The JSON of calls by orchestrators that speak the shape of chat completions.
#pragma once

#include "base/deadline.hpp"
#include "runtime/runs/run_manager.hpp"
#include "server/http_message.hpp"

#include <boost/json/object.hpp>

#include <expected>
#include <optional>
#include <string>

namespace ars::server {

struct AgentCall {
    runs::SubmitRun submit;
    bool async = false;
    std::optional<base::milliseconds> wait;  // of a call that is not async
    boost::json::object meta;                // given back as it came
};

// POST /api/agent-invocation/agent-call/runs: the last user message is the input. The request id
// may stand in the header Idempotency-Key too.
[[nodiscard]] std::expected<AgentCall, HttpResponse> read_agent_call(const HttpRequest& request);
[[nodiscard]] boost::json::object agent_call_schema();

// `choices` and `usage` as of a chat completion; usage is null unless every model call told its
// own.
[[nodiscard]] boost::json::object call_to_json(const runs::RunOutcome& outcome);

struct CallResultQuery {
    std::string run_id;
    std::string agent_slug;  // empty = any
};
[[nodiscard]] std::expected<CallResultQuery, HttpResponse> read_call_result_query(
    const HttpRequest& request
);
[[nodiscard]] boost::json::object call_result_query_schema();

}  // namespace ars::server
