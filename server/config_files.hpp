// What a configuration takes from outside the file: environment variables, other files, secrets,
// dates.
#pragma once

#include "base/document.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ars::server {

// Replaces ${VAR} and ${VAR:-default} in the places that may hold them: models.default,
// models.providers.*.base_url, server.listen, data_dir and mounts.users. An unset variable without
// default, and a
// ${...} in any other text, is a fault.
void expand_variables(base::Document& document, std::vector<base::Fault>& faults);

// `path` as seen from the directory of `file`; absolute ones as they are.
[[nodiscard]] std::string beside(const std::string& file, const std::string& path);
// With the current directory in front when relative.
[[nodiscard]] std::string absolute_path(const std::string& path);

// The regular files of a pattern, sorted. Wildcards (* and ?) may stand in the last part only;
// hidden files are left out.
[[nodiscard]] std::vector<std::string> matching_files(const std::string& pattern);

// The variable's value; nothing when unset or empty.
[[nodiscard]] std::optional<std::string> environment_variable(const std::string& name);
// A file's text without surrounding white space. Errors: it can't be read or is empty.
[[nodiscard]] base::Result<std::string> read_secret(const std::string& path);

// "2027-01-31" (its first moment in UTC), "2027-01-31T12:00:00Z" or
// "2027-01-31T12:00:00.123+02:00", in milliseconds since the epoch.
[[nodiscard]] std::optional<std::int64_t> parse_date(std::string_view text);

}  // namespace ars::server
