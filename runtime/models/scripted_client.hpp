// The provider without a model: it plays scripts, for demonstrations and tests without key or
// network. It says what the script says and nothing else; a request that no script foresees is an
// error, not a guess.
#pragma once

#include "runtime/models/model_client.hpp"
#include "runtime/models/scripted_script.hpp"

#include <memory>

namespace ars::models {

// Stateless: the same request gets the same reply. Tool calls carry the script's ids, and
// placeholders are filled from the tool messages that carry them after the last user message. Usage
// is estimated (4 bytes a token).
class ScriptedClient final : public ModelClient {
  public:
    explicit ScriptedClient(std::shared_ptr<const ScriptBook> scripts)
        : scripts_(std::move(scripts)) {}

    // Errors: "model_rejected" naming the script's file and line when no script or turn fits or a
    // placeholder stays open, "model_timeout" when the deadline passes first.
    base::Task<base::Result<ModelReply>> complete(const ModelRequest& request, DeltaSink& sink)
        override;

  private:
    std::shared_ptr<const ScriptBook> scripts_;
};

}  // namespace ars::models
