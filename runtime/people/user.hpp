// Who a request, a run or a file belongs to.
#pragma once

#include <cstdint>
#include <string>

namespace ars::people {

enum class UserRole : std::uint8_t { user, admin, superadmin };  // in the order of their rights
[[nodiscard]] const char* to_string(UserRole role);

struct User {
    std::string uid;
    UserRole role = UserRole::user;
    std::string department;  // may be empty
};

}  // namespace ars::people
