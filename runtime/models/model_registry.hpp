// Which providers there are. A model spec is "<provider>:<model>"; it is valid when the provider is
// declared.
#pragma once

#include "base/result.hpp"
#include "runtime/models/model_client.hpp"

#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace ars::models {

struct ResolvedModel {
    ModelClient* client = nullptr;
    std::string model;
};

class ModelRegistry {
  public:
    void add(std::string provider, std::unique_ptr<ModelClient> client);
    // Error code "unknown_model", naming the declared providers.
    [[nodiscard]] base::Result<ResolvedModel> resolve(std::string_view spec) const;

  private:
    std::map<std::string, std::unique_ptr<ModelClient>, std::less<>> clients_;
};

}  // namespace ars::models
