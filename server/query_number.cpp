#include "server/query_number.hpp"

#include "server/http_error.hpp"

#include <charconv>
#include <string>

namespace ars::server {

std::expected<std::size_t, HttpResponse> number_of(
    const HttpRequest& request, std::string_view name, std::size_t otherwise, std::size_t most
) {
    const auto text = request.query(name);
    if (!text) {
        return otherwise;
    }
    std::size_t value = 0;
    const auto [end, ec] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (ec != std::errc() || end != text->data() + text->size() || value > most) {
        return std::unexpected(faults_response(
            {{"/" + std::string(name),
              "must be a whole number between 0 and " + std::to_string(most),
              ""}}
        ));
    }
    return value;
}

std::expected<ListPart, HttpResponse> list_part_of(const HttpRequest& request) {
    auto limit = number_of(request, "limit", kListDefault, kListLimit);
    if (!limit) {
        return std::unexpected(std::move(limit.error()));
    }
    auto offset = number_of(request, "offset", 0, kListOffset);
    if (!offset) {
        return std::unexpected(std::move(offset.error()));
    }
    return ListPart{*limit, *offset};
}

std::expected<bool, HttpResponse> flag_of(
    const HttpRequest& request, std::string_view name, bool otherwise
) {
    const auto text = request.query(name);
    if (!text) {
        return otherwise;
    }
    if (*text == "true" || *text == "1") {
        return true;
    }
    if (*text == "false" || *text == "0") {
        return false;
    }
    return std::unexpected(faults_response({{"/" + std::string(name), "must be true or false", ""}})
    );
}

}  // namespace ars::server
