// The JSON of attachments.
#pragma once

#include "base/fields.hpp"
#include "runtime/runs/attachments.hpp"

#include <boost/json/object.hpp>

#include <string>
#include <vector>

namespace ars::server {

// POST .../attachments/confirm.
struct ConfirmBody {
    std::vector<std::string> file_ids;
};
[[nodiscard]] const base::Fields<ConfirmBody>& confirm_fields();

// POST /api/chat/attachments/tmp/parse.
struct ParseBody {
    std::string file_id;
};
[[nodiscard]] const base::Fields<ParseBody>& parse_fields();

[[nodiscard]] boost::json::object attachment_to_json(const runs::Attachment& attachment);

}  // namespace ars::server
