// A YAML or JSON text as one JSON value that still knows on which line each part stood, so that a
// fault found later can be reported as file:line:key. The only door to yaml-cpp is document.cpp.
#pragma once

#include "base/result.hpp"

#include <boost/json/value.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ars::base {

// One thing wrong with an input, and what to do about it.
struct Fault {
    std::string path;     // JSON pointer of the offending value: "/config_json/context/model"
    std::string message;  // what is wrong
    std::string remedy;   // what to write instead; may be empty
};

struct Document {
    std::string file;  // as shown to people; empty for a request body
    boost::json::value value;
    std::map<std::string, int> lines;  // JSON pointer -> 1-based line

    // "configs/agents/a.yaml:12: config_json.context.modle: unknown key; did you mean \"model\"?"
    [[nodiscard]] std::string describe(const Fault& fault) const;
    // The line of the value at `path`, or of its nearest parent that has one; 0 when unknown.
    [[nodiscard]] int line_of(std::string_view path) const;
};

// Plain scalars become null, booleans, integers and doubles as in YAML's core schema; quoted ones
// stay text. Duplicate keys, anchors that recurse, several documents and more than
// limits::kJsonDepth levels are refused.
[[nodiscard]] Result<Document> parse_yaml(std::string file, std::string_view text);
[[nodiscard]] Result<Document> load_yaml(const std::string& path);

}  // namespace ars::base
