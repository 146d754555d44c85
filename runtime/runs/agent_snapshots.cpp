#include "runtime/runs/agent_snapshots.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <cstddef>
#include <utility>

namespace ars::runs {

namespace {

// More than an appliance has agents in use; agents that change leave their old versions behind.
constexpr std::size_t kRemembered = 256;

template <class Map>
void make_room(Map& map) {
    if (map.size() >= kRemembered) {
        map.clear();
    }
}

}  // namespace

std::string AgentSnapshots::text_of(const agents::AgentPtr& agent) {
    if (const auto known = texts_.find(agent); known != texts_.end()) {
        return known->second;
    }
    make_room(texts_);
    std::string text = boost::json::serialize(agents::context_to_json(agent->context));
    return texts_.emplace(agent, std::move(text)).first->second;
}

base::Result<ContextPtr> AgentSnapshots::parse(const std::string& text) {
    if (const auto known = contexts_.find(text); known != contexts_.end()) {
        return known->second;
    }
    auto context = agents::parse_context(boost::json::parse(text).as_object());
    if (!context) {
        return std::unexpected(context.error());
    }
    make_room(contexts_);
    return contexts_
        .emplace(text, std::make_shared<const agents::AgentContext>(*std::move(context)))
        .first->second;
}

}  // namespace ars::runs
