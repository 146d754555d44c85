// The keys of people in appliance.yaml, in request bodies and in the store: the same rules
// everywhere.
#pragma once

#include "base/fields.hpp"
#include "runtime/people/rate_limit.hpp"
#include "runtime/people/user.hpp"

namespace ars::people {

inline constexpr std::int64_t kUidBytes = 200;
inline constexpr std::int64_t kDepartmentBytes = 200;
inline constexpr std::int64_t kKeyNameBytes = 200;

[[nodiscard]] const base::Fields<User>& user_fields();
[[nodiscard]] const base::Fields<RateLimit>& rate_limit_fields();

}  // namespace ars::people
