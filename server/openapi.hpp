// GET /openapi.json. Paths come from the router, bodies from the field tables that decode them,
// answers and texts from openapi_<part>.cpp. Who adds a route adds an Operation to its part.
#pragma once

#include "server/openapi_schema.hpp"
#include "server/router.hpp"

#include <boost/json/object.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace ars::server {

// The parts, in the document's order.
namespace openapi {
[[nodiscard]] Part system_part();
[[nodiscard]] Part agents_part();
[[nodiscard]] Part runs_part();
[[nodiscard]] Part events_part();  // what streams of runs and requests carry
[[nodiscard]] Part requests_part();
[[nodiscard]] Part calls_part();
[[nodiscard]] Part threads_part();
[[nodiscard]] Part files_part();
[[nodiscard]] Part attachments_part();
[[nodiscard]] Part user_part();
[[nodiscard]] Part people_part();
}  // namespace openapi

// OpenAPI 3.1 of those routes that are documented.
[[nodiscard]] boost::json::object openapi_document(
    const std::vector<ListedRoute>& routes, std::string_view version
);

// Routes without documentation, documentation without a route, and path parameters that differ: a
// sentence each. A test holds it empty.
[[nodiscard]] std::vector<std::string> openapi_faults(const std::vector<ListedRoute>& routes);

}  // namespace ars::server
