#include "runtime/models/model_registry.hpp"

#include <utility>

namespace ars::models {

void ModelRegistry::add(std::string provider, std::unique_ptr<ModelClient> client) {
    clients_[std::move(provider)] = std::move(client);
}

base::Result<ResolvedModel> ModelRegistry::resolve(std::string_view spec) const {
    // Only the first colon divides: model names carry colons of their own ("local:llama3:8b").
    const std::size_t colon = spec.find(':');
    const std::string_view provider = spec.substr(0, colon);
    const auto known = clients_.find(provider);
    if (colon != std::string_view::npos && colon + 1 < spec.size() && known != clients_.end()) {
        return ResolvedModel{known->second.get(), std::string(spec.substr(colon + 1))};
    }
    std::string declared;
    for (const auto& [name, client] : clients_) {
        declared += (declared.empty() ? "" : ", ") + name;
    }
    return base::fail(
        base::ErrorKind::invalid,
        "unknown_model",
        "\"" + std::string(spec) + "\" is not a model; write <provider>:<model> with one of the " +
            "declared providers: " + (declared.empty() ? "(none)" : declared)
    );
}

}  // namespace ars::models
