// A model that makes the same calls again and again learns nothing from their results: it is told
// so, and when that does not help the run ends with a reason instead of with its last step.
#pragma once

#include "runtime/store/records.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace ars::runs {

// Turns in a row until the model is told, and until the run is given up.
inline constexpr std::uint32_t kRepeatsNoticed = 5;
inline constexpr std::uint32_t kRepeatsLimit = 20;

// How many turns at the end of the history made the same calls with the same results; 1 for a turn
// that is not like the one before, 0 when the history does not end with results. Looking again at
// something that goes on by itself (a sub-agent, a command that runs) is no repetition.
[[nodiscard]] std::uint32_t repeated_turns(const std::vector<store::MessageRecord>& history);

// For the model, behind its last result; empty when there is nothing to say.
[[nodiscard]] std::string repetition_notice(const std::vector<store::MessageRecord>& history);

}  // namespace ars::runs
