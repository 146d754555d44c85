// Who sent a request: the user whose rights and files it uses, and the key that it came with.
#pragma once

#include "runtime/people/user.hpp"

#include <string>

namespace ars::people {

struct Caller {
    User user;
    std::string key_name;  // "" where no key is demanded
    std::string key_uid;   // the key's own user: another one than `user` when it acts for him

    [[nodiscard]] bool is_acting() const { return key_uid != user.uid; }
    [[nodiscard]] bool is_admin() const { return user.role != UserRole::user; }
};

}  // namespace ars::people
