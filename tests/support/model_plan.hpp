// Random work for a parent and its sub-agents, told to a model in the message itself: the model
// server plays it turn by turn, and a simulation that knows nothing of the server says what must
// come of it.
#pragma once

#include "tests/support/model_server.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace ars::tests {

struct PlannedCall {
    // note: writes a file; ask: a question to a person; task, start: of a child;
    // await, status, cancel: of the child that call `of` started; again: a task in that child's
    // thread.
    std::string kind;
    std::string of;     // id of an earlier call
    std::string child;  // JSON of the child's plan, for task, start and again
};

// What one message asks for. Calls have the id "c<turn>_<place>".
struct Plan {
    std::string id;
    std::vector<std::vector<PlannedCall>> turns;
    bool fails = false;  // the provider refuses the call after the last turn
    bool hangs = false;  // it never answers that call: only a cancel ends the run
};

struct PlanSettings {
    int turns = 4;
    int calls = 3;  // in a turn, at most
    bool asks = true;
};

[[nodiscard]] Plan random_plan(const std::string& id, std::mt19937& random, PlanSettings settings);
[[nodiscard]] std::string message_of(const Plan& plan);

struct Foreseen {
    std::string output;
    // By the id of the plan: of the run, and of the children whose end it waited for unless they
    // were cancelled.
    std::map<std::string, int> model_calls;
    std::vector<std::string> notes;  // files that must be there
};
[[nodiscard]] Foreseen foresee(const Plan& plan);

// The id of the plan that a request is about; empty when there is none in it.
[[nodiscard]] std::string plan_id_of(const RecordedRequest& request);
// Plays the plans of all conversations.
[[nodiscard]] ModelServer::Handler plan_player();

}  // namespace ars::tests
