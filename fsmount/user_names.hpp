// The name of the tools' user: the image's passwd and group with gem in them. Internal to the room.
#pragma once

#include <string>
#include <string_view>

namespace ars::fsmount {

// Every line but those that give another name to gem's id or another id to gem's name, then gem's
// own.
[[nodiscard]] std::string passwd_with_gem(std::string_view passwd);
[[nodiscard]] std::string group_with_gem(std::string_view group);

}  // namespace ars::fsmount
