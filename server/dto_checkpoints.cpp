#include "server/dto_checkpoints.hpp"

#include "base/fields.hpp"
#include "server/dto_runs.hpp"
#include "server/json_body.hpp"

#include <boost/json/parse.hpp>

namespace ars::server {

namespace json = boost::json;

namespace {

constexpr std::int64_t kIdBytes = 200;
constexpr std::int64_t kRequestIdBytes = 64;
constexpr std::int64_t kTitleBytes = 1024;

struct ForkBody {
    std::optional<std::string> checkpoint_id;
    std::optional<std::string> title;
    std::optional<std::string> request_id;
};

const base::Fields<ForkBody>& fork_fields() {
    static const auto fields =
        base::Fields<ForkBody>{}
            .text(
                "checkpoint_id",
                &ForkBody::checkpoint_id,
                {.min = 1, .max = kIdBytes, .doc = "Where the new thread begins; the latest."}
            )
            .text("title", &ForkBody::title, {.max = kTitleBytes})
            .text(
                "request_id",
                &ForkBody::request_id,
                {.min = 1, .max = kRequestIdBytes, .doc = "The same id gives the same thread."}
            );
    return fields;
}

}  // namespace

json::object fork_schema() { return fork_fields().schema(); }

std::expected<runs::ForkThread, HttpResponse> read_fork(const HttpRequest& request) {
    auto body = read_body(request, fork_fields());
    if (!body) {
        return std::unexpected(std::move(body.error()));
    }
    runs::ForkThread out;
    out.user = request.user;
    out.checkpoint_id = body->checkpoint_id.value_or("");
    out.title = body->title.value_or("");
    out.request_id = body->request_id.value_or("");
    return out;
}

json::object checkpoint_to_json(
    const store::ReadTxn& txn, const store::CheckpointRecord& checkpoint
) {
    const auto run = txn.run(checkpoint.run);
    json::error_code ec;
    json::value state = json::parse(checkpoint.state, ec);
    return {
        {"checkpoint_id", checkpoint.id},
        {"run_id", run ? json::value(run->id) : json::value()},
        {"step", checkpoint.step},
        {"agent_state", ec ? json::value(json::object()) : std::move(state)},
        {"created_at", time_to_json(checkpoint.created_ms)},
    };
}

}  // namespace ars::server
