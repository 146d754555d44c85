// What the whole API shares (errors), and routes about the server itself.
#include "server/openapi.hpp"

namespace ars::server::openapi {

namespace {

Schema error_with(Schema detail) { return object({{"detail", std::move(detail)}}); }

Schema health() {
    return object({{"status", constant("ok")}, {"version", text()}, {"uptime_seconds", whole()}});
}

Schema ready(std::string_view status) {
    return object({{"status", constant(status)}, {"accepting", boolean()}});
}

Schema discovery() {
    return object(
        {{"name", constant("ars")},
         {"version", text()},
         {"api_base", text()},
         {"auth", object({{"required", boolean()}, {"schemes", list(text())}})},
         {"sandbox", object({{"tier", choice({"namespaces", "landlock", "probing"})}})},
         {"features",
          object(
              {{"subagents", boolean()},
               {"events", choice({"sse"})},
               {"queue_policies", list(text())},
               {"knowledge", boolean()},
               {"attachments", boolean()}}
          )}}
    );
}

Schema reload_report() {
    const Schema names = list(text());
    return object(
        {{"status", choice({"reloaded", "refused"})},
         {"at", time()},
         {"faults", names},
         {"agents", object({{"added", names}, {"changed", names}, {"removed", names}})},
         {"needs_restart", documented(names, "Keys that changed and are read at a start alone.")}}
    );
}

}  // namespace

Part system_part() {
    Part part{"system", "The server itself.", {}, {}};
    part.schemas = {
        {"Fault",
         object(
             {{"path", text("JSON pointer into the body, or /<parameter>.")},
              {"message", text()},
              {"remedy?", text()}}
         )},
        {"Error",
         error_with(any_of(
             {object(
                  {{"code", text("What a program switches on.")},
                   {"message", text("What a person can act on.")},
                   {"faults?", list(ref("Fault"))},
                   {"line?", whole("Where a body stops being JSON.")},
                   {"column?", whole("In bytes.")},
                   {"key?", text("The name that can't stand there.")}}
              ),
              constant("Not Found")}
         ))},
        {"Conflict",
         error_with(object(
             {{"code", text()},
              {"message", text()},
              {"run_id?", nullable(text())},
              {"active_run_id?", text("The run that is in the way.")},
              {"active_run_status?", ref("RunStatus")},
              {"agent_slug?", text()},
              {"thread_id?", text()},
              {"request_id?", text()},
              {"status?", ref("RequestStatus")},
              {"queue_policy?", ref("QueuePolicy")},
              {"queue_position?", whole()},
              {"message_id?", nullable(text())},
              {"run_status?", nullable(ref("RunStatus"))},
              {"stream_url?", nullable(text())},
              {"request_events_url?", nullable(text())},
              {"etag?", text("Of the version that it is.")}}
         ))},
        {"ReloadReport", reload_report()},
        {"WaitTimeout",
         error_with(object({{"code", text()}, {"message", text()}, {"run", ref("Run")}}))},
    };
    part.operations.push_back(
        Operation(Method::get, "/api/system/health", "health", "Whether it is alive.")
            .answers(200, health())
    );
    part.operations.push_back(
        Operation(Method::get, "/api/system/ready", "ready", "Whether it takes runs.")
            .answers(200, ready("ready"))
            .answers(503, ready("not_ready"), "Not yet, or no longer.")
    );
    part.operations.push_back(
        Operation(Method::get, "/api/system/discovery", "discovery", "What it is and can.")
            .answers(200, discovery())
    );
    part.operations.push_back(
        Operation(Method::get, "/metrics", "metrics", "Counters for Prometheus.")
            .answers_bytes(200, "text/plain")
    );
    part.operations.push_back(Operation(Method::get, "/openapi.json", "openapi", "This document.")
                                  .answers(200, open_object("OpenAPI 3.1.")));
    part.operations.push_back(
        Operation(Method::post, "/api/system/reload", "reload", "Reads the configuration again.")
            .answers(200, ref("ReloadReport"))
            .answers(
                422,
                error_with(object({{"code", text()}, {"message", text()}, {"faults", list(text())}})
                ),
                "The files have faults: nothing was changed."
            )
            .fails({409, 503})
    );
    part.operations.push_back(
        Operation(Method::get, "/api/system/reload", "getReload", "How the last one went.")
            .answers(200, object({{"reload", nullable(ref("ReloadReport"))}}))
    );
    return part;
}

}  // namespace ars::server::openapi
