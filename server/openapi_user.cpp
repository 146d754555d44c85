// What a user keeps for himself.
#include "server/openapi.hpp"

namespace ars::server::openapi {

Part user_part() {
    constexpr std::string_view kPath = "/api/user/agent-env";
    Part part{"user", "What callers keep for themselves.", {}, {}};
    part.schemas = {
        {"AgentEnv", object({{"env", map(text())}})},
    };
    part.operations.push_back(Operation(
                                  Method::get,
                                  std::string(kPath),
                                  "getAgentEnv",
                                  "The variables of the caller's commands."
    )
                                  .answers(200, ref("AgentEnv")));
    part.operations.push_back(
        Operation(
            Method::put,
            std::string(kPath),
            "putAgentEnv",
            "Replaces them all, for runs that begin from now on. A name that is none, or is there "
            "twice, is 400."
        )
            .body(ref("AgentEnv"))
            .answers(200, ref("AgentEnv"))
    );
    return part;
}

}  // namespace ars::server::openapi
