// Whole numbers and switches in the query of a request.
#pragma once

#include "server/http_message.hpp"

#include <cstddef>
#include <expected>
#include <string_view>

namespace ars::server {

// The number `name`, `otherwise` when it is not there; outside 0..`most` a refusal that names it.
[[nodiscard]] std::expected<std::size_t, HttpResponse> number_of(
    const HttpRequest& request, std::string_view name, std::size_t otherwise, std::size_t most
);

// Which part of a list: its "limit" and "offset".
inline constexpr std::size_t kListDefault = 100;
inline constexpr std::size_t kListLimit = 500;
inline constexpr std::size_t kListOffset = 1'000'000;
struct ListPart {
    std::size_t limit = kListDefault;
    std::size_t offset = 0;
};
[[nodiscard]] std::expected<ListPart, HttpResponse> list_part_of(const HttpRequest& request);

// true (1) or false (0); anything else is refused: it would be taken for the other one.
[[nodiscard]] std::expected<bool, HttpResponse> flag_of(
    const HttpRequest& request, std::string_view name, bool otherwise
);

}  // namespace ars::server
