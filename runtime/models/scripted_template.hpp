// Texts of a script with placeholders that are filled from the conversation, so that a scripted
// answer quotes what really came out of the tools:
//
//     {{user}}                               the last user message
//     {{report}}                             the result of the call with id `report`
//     {{start.json.run_id}}                  a field of a result that is JSON; list items by number
//     {{sums | line "total="}}               the rest of the first line of the result that starts
//     so
//     {{sums | line "total=" | word 1}}      its first word; also: trim, sh (quoted for a shell)
#pragma once

#include "base/result.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ars::models {

struct Filter {
    enum class Kind : std::uint8_t { line, word, trim, sh };
    Kind kind = Kind::trim;
    std::string text;        // of `line`
    std::size_t number = 0;  // of `word`, from 1
};

struct Placeholder {
    std::string written;  // as it stands in the script, for messages
    std::string source;   // "user" or a call id
    bool json = false;
    std::vector<std::string> path;  // into the JSON result
    std::vector<Filter> filters;
};

struct TemplatePart {
    std::string text;  // literal; empty when `placeholder` is set
    std::optional<Placeholder> placeholder;
};

// Errors: "bad_placeholder", saying what is wrong with it.
[[nodiscard]] base::Result<std::vector<TemplatePart>> parse_template(std::string_view text);

// `lookup` gives the text behind a source, or nothing when the conversation has none. Errors: code
// "unresolved_placeholder", naming the placeholder and what was found instead.
[[nodiscard]] base::Result<std::string> render_template(
    std::string_view text,
    const std::function<std::optional<std::string>(const std::string& source)>& lookup
);

}  // namespace ars::models
