// The part of JSON Schema that the API's document uses, for tests that hold answers against it. A
// keyword it does not know is a fault, so that nothing is passed over in silence.
#pragma once

#include <boost/json/value.hpp>

#include <string>
#include <vector>

namespace ars::tests {

// The value at "#/a/b" of `root`, or null.
const boost::json::value* resolve(const boost::json::value& root, const std::string& ref);

// What is wrong with `value`, each fault with its place; references are looked up in `root`.
std::vector<std::string> schema_faults(
    const boost::json::value& root,
    const boost::json::value& schema,
    const boost::json::value& value
);

// What is wrong with a schema itself: unknown keywords, references that lead nowhere.
std::vector<std::string> faults_of_schema(
    const boost::json::value& root, const boost::json::value& schema
);

}  // namespace ars::tests
