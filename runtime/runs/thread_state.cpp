#include "runtime/runs/thread_state.hpp"

#include "base/clock.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>

namespace ars::runs {

namespace json = boost::json;

namespace {

json::object no_usage() {
    return {{"input_tokens", 0}, {"output_tokens", 0}, {"total_tokens", 0}, {"complete", true}};
}

// The bucket `key` of `all`, at zero where `fresh` or not there yet.
json::object& bucket(json::object& all, std::string_view key, bool fresh) {
    json::value& value = all[key];
    if (fresh || !value.is_object()) {
        value = no_usage();
    }
    return value.get_object();
}

json::object fresh_usage() {
    json::object thread = no_usage();
    thread["models"] = json::object{};
    return {
        {"schema_version", 2},
        {"latest", nullptr},
        {"run", no_usage()},
        {"thread", std::move(thread)}
    };
}

void add(json::object& bucket, const models::Usage& usage, bool known) {
    const auto plus = [&bucket](const char* key, std::uint64_t value) {
        bucket[key] = bucket[key].to_number<std::uint64_t>() + value;
    };
    plus("input_tokens", usage.input_tokens);
    plus("output_tokens", usage.output_tokens);
    plus("total_tokens", usage.input_tokens + usage.output_tokens);
    bucket["complete"] = bucket["complete"].as_bool() && known;
}

void show_as_it_stands(const store::ReadTxn& txn, json::object& entry) {
    const json::value* id = entry.if_contains("run_id");
    const auto run = id != nullptr && id->is_string() ? txn.run_by_id(std::string(id->get_string()))
                                                      : std::nullopt;
    if (!run) {
        return;
    }
    entry["status"] = store::to_string(run->status);
    if (store::is_terminal(run->status)) {
        entry["completed_at"] = base::iso8601(run->finished_ms);
        if (!run->error_message.empty()) {
            entry["error"] = run->error_message;
        }
    }
}

}  // namespace

void count_usage(
    json::object& state, const store::RunRecord& run, const models::Usage& usage, bool usage_known
) {
    json::value& stored = state["token_usage"];
    if (!stored.is_object()) {
        stored = fresh_usage();
    }
    json::object& all = stored.get_object();
    const json::value* of_run = all["run"].as_object().if_contains("run_id");
    const bool is_new_run = of_run == nullptr || of_run->as_string() != run.id;
    json::object& own = bucket(all, "run", is_new_run);
    if (is_new_run) {
        own["run_id"] = run.id;
    }
    add(own, usage, usage_known);
    add(bucket(all, "latest", true), usage, usage_known);
    json::object& thread = all["thread"].as_object();
    add(thread, usage, usage_known);
    add(bucket(thread["models"].as_object(), run.model_spec, false), usage, usage_known);
}

json::object thread_state(const store::ReadTxn& txn, const store::ThreadRecord& thread) {
    const auto checkpoint = txn.latest_checkpoint(thread.no);
    json::object state;
    if (checkpoint && !checkpoint->state.empty()) {
        state = json::parse(checkpoint->state).as_object();
    }
    for (const char* list : {"todos", "artifacts", "subagent_runs", "activated_skills"}) {
        if (!state[list].is_array()) {
            state[list] = json::array{};
        }
    }
    for (json::value& entry : state["subagent_runs"].get_array()) {
        show_as_it_stands(txn, entry.as_object());
    }
    if (!state["token_usage"].is_object()) {
        state["token_usage"] = fresh_usage();
    }
    return state;
}

}  // namespace ars::runs
