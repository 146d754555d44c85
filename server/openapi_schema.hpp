// Words to write the OpenAPI document with: schemas of answers, and operations. What they make is
// plain JSON; a keyword that is not here is one that the test's validator need not know.
#pragma once

#include "server/http_message.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace ars::server::openapi {

using Schema = boost::json::object;

[[nodiscard]] Schema text(std::string_view doc = {});
[[nodiscard]] Schema time();
[[nodiscard]] Schema whole(std::string_view doc = {});  // 0 and above
[[nodiscard]] Schema whole_to(std::uint64_t most);
[[nodiscard]] Schema boolean();
[[nodiscard]] Schema choice(std::initializer_list<std::string_view> values);
[[nodiscard]] Schema constant(std::string_view value);
[[nodiscard]] Schema list(Schema items);
[[nodiscard]] Schema map(Schema values);
[[nodiscard]] Schema anything(std::string_view doc = {});
[[nodiscard]] Schema open_object(std::string_view doc = {});  // whose keys are not ours
[[nodiscard]] Schema nullable(Schema schema);
[[nodiscard]] Schema ref(std::string_view component);
[[nodiscard]] Schema any_of(std::initializer_list<Schema> schemas);
[[nodiscard]] Schema documented(Schema schema, std::string_view doc);

struct Member {
    std::string_view name;  // "name?" may be missing
    Schema schema;
};
// With these members and no others.
[[nodiscard]] Schema object(const std::vector<Member>& members);

// One method of one path. What follows from the method and from a key is added by the document.
class Operation {
  public:
    // `path` as the router has it; `id` names the operation in generated clients.
    Operation(Method method, std::string path, std::string_view id, std::string_view doc);

    // In the order of the path. Each part in braces needs one.
    Operation&& path(std::string_view name, std::string_view doc) &&;
    Operation&& query(std::string_view name, Schema schema, std::string_view doc) &&;
    Operation&& required_query(std::string_view name, Schema schema, std::string_view doc) &&;
    Operation&& header(std::string_view name, std::string_view doc) &&;
    // A JSON body, and how such a body may fail.
    Operation&& body(Schema schema) &&;
    Operation&& body_of(std::string_view content_type, Schema schema) &&;
    // For commands without options: nothing, or {}.
    Operation&& empty_body() &&;

    Operation&& answers(int status, Schema schema, std::string_view doc = {}) &&;
    Operation&& answers_bytes(
        int status, std::string_view content_type, std::string_view doc = {}
    ) &&;
    // Server-sent events whose `data` is JSON of this component.
    Operation&& answers_events(std::string_view component) &&;
    // Lines of JSON, each of this component.
    Operation&& answers_lines(std::string_view component) &&;
    // {"detail": ...} with one of these.
    Operation&& fails(std::initializer_list<int> statuses) &&;

    [[nodiscard]] Method method() const { return method_; }
    [[nodiscard]] const std::string& pattern() const { return path_; }
    [[nodiscard]] const boost::json::object& json() const { return out_; }

  private:
    void parameter(
        std::string_view in,
        std::string_view name,
        Schema schema,
        std::string_view doc,
        bool required
    );
    void answer(int status, std::string_view doc, boost::json::object content);

    Method method_;
    std::string path_;
    boost::json::object out_;
};

// What one file documents: its routes and the shapes that they share.
struct Part {
    std::string_view tag;
    std::string_view doc;
    std::vector<std::pair<std::string_view, Schema>> schemas;
    std::vector<Operation> operations;
};

// A reference to the answer that all operations give with this error status.
[[nodiscard]] boost::json::object failure_ref(int status);

}  // namespace ars::server::openapi
