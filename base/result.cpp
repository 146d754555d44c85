#include "base/result.hpp"

#include <cstring>

namespace ars::base {

Error errno_error(std::string code, std::string_view what, int sys_errno) {
    Error error{ErrorKind::io, std::move(code), std::string(what), sys_errno};
    error.message += ": ";
    error.message +=
        ::strerrordesc_np(sys_errno) != nullptr ? ::strerrordesc_np(sys_errno) : "unknown error";
    error.message += " (errno ";
    error.message += std::to_string(sys_errno);
    error.message += ")";
    return error;
}

}  // namespace ars::base
