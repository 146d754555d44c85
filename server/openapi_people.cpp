// Users, their API keys, and the audit log.
#include "server/dto_people.hpp"
#include "server/openapi.hpp"
#include "server/query_number.hpp"

namespace ars::server::openapi {

namespace {

Schema user() {
    return object(
        {{"uid", text()},
         {"role", ref("UserRole")},
         {"department", text()},
         {"source", ref("PeopleSource")},
         {"created_by", nullable(text())},
         {"created_at", nullable(time())},
         {"updated_at", nullable(time())}}
    );
}

Schema api_key() {
    return object(
        {{"id", text()},
         {"name", text()},
         {"prefix", nullable(text("First characters of the secret."))},
         {"user_id", text("Whose it is.")},
         {"created_by", nullable(text())},
         {"created_at", nullable(time())},
         {"expires_at", nullable(time())},
         {"last_used_at", nullable(time())},
         {"revoked_at", nullable(time())},
         {"enabled", boolean()},
         {"act_for", list(text("A uid, or \"*\"."))},
         {"source", ref("PeopleSource")}}
    );
}

Schema created_key() {
    return object(
        {{"api_key", ref("ApiKey")}, {"secret", nullable(text("The key itself, this once."))}}
    );
}

Schema audit_line() {
    return object(
        {{"version", {{"const", 1}}},
         {"seq", whole()},
         {"at", time()},
         {"action", text("key.create")},
         {"actor", nullable(text("Whose key it was."))},
         {"key", nullable(text("Its name."))},
         {"acting_for", nullable(text())},
         {"target", nullable(text())},
         {"detail", open_object()}}
    );
}

Schema one_user() { return object({{"user", ref("User")}}); }
Schema one_key() { return object({{"api_key", ref("ApiKey")}}); }

std::vector<Operation> user_operations() {
    const std::string users = "/api/system/users";
    const std::string one = users + "/{uid}";
    std::vector<Operation> out;
    out.push_back(
        Operation(Method::get, "/api/user/me", "getMe", "Who you are, and with which key.")
            .answers(
                200,
                object(
                    {{"uid", text()},
                     {"role", ref("UserRole")},
                     {"department", text()},
                     {"key_name", nullable(text())},
                     {"acting_key",
                      documented(
                          nullable(object({{"name", text()}, {"user_id", text()}})),
                          "The key that acts for you, and whose it is."
                      )}}
                )
            )
    );
    out.push_back(Operation(Method::get, users, "listUsers", "All users; for administrators.")
                      .query("limit", whole_to(kListLimit), "How many; 100 when absent.")
                      .query("offset", whole_to(kListOffset), "How many to leave out.")
                      .answers(200, object({{"users", list(ref("User"))}, {"total", whole()}}))
                      .fails({422}));
    out.push_back(Operation(Method::post, users, "createUser", "Makes a user.")
                      .body(new_user_schema())
                      .answers(201, one_user())
                      .fails({409}));
    out.push_back(Operation(Method::get, one, "getUser", "One user.")
                      .path("uid", "The user.")
                      .answers(200, one_user())
                      .fails({404}));
    out.push_back(Operation(Method::put, one, "changeUser", "Role and department.")
                      .path("uid", "The user.")
                      .body(user_change_schema())
                      .answers(200, one_user())
                      .fails({404, 409}));
    out.push_back(
        Operation(Method::del, one, "deleteUser", "His keys end; his runs and files stay.")
            .path("uid", "The user.")
            .answers(200, object({{"deleted", boolean()}}))
            .fails({404, 409})
    );
    out.push_back(
        Operation(Method::get, "/api/system/audit", "readAudit", "What was changed, oldest first.")
            .query("after", whole(), "Lines with a greater seq only.")
            .query("limit", whole_to(kAuditPage), "How many; 1000 when absent.")
            .answers_lines("AuditLine")
            .fails({422})
    );
    return out;
}

std::vector<Operation> key_operations() {
    const std::string keys = "/api/user/apikey";
    const std::string one = keys + "/{id}";
    std::vector<Operation> out;
    // The public system has the slash, people leave it out.
    for (const bool slash : {false, true}) {
        const std::string path = keys + (slash ? "/" : "");
        out.push_back(
            Operation(
                Method::get,
                path,
                slash ? "listApiKeysSlash" : "listApiKeys",
                "Your API keys; for administrators everybody's up to their own role."
            )
                .query("user_id", text(), "Of this user only.")
                .query("limit", whole_to(kListLimit), "How many; 100 when absent.")
                .query("offset", whole_to(kListOffset), "How many to leave out.")
                .answers(200, object({{"api_keys", list(ref("ApiKey"))}, {"total", whole()}}))
                .fails({422})
        );
        out.push_back(
            Operation(
                Method::post,
                path,
                slash ? "createApiKeySlash" : "createApiKey",
                "Makes an API key."
            )
                .body(new_key_schema())
                .answers(201, created_key())
                .answers(200, created_key(), "The same request again: without the secret.")
                .fails({404, 409})
        );
    }
    out.push_back(Operation(Method::get, one, "getApiKey", "One API key.")
                      .path("id", "The key.")
                      .answers(200, one_key())
                      .fails({404}));
    out.push_back(Operation(Method::put, one, "changeApiKey", "Name, end, enabled.")
                      .path("id", "The key.")
                      .body(key_change_schema())
                      .answers(200, one_key())
                      .fails({404, 409}));
    out.push_back(Operation(Method::del, one, "revokeApiKey", "Ends a key for good.")
                      .path("id", "The key.")
                      .answers(200, one_key())
                      .fails({404, 409}));
    return out;
}

}  // namespace

Part people_part() {
    Part part{"people", "Users, their API keys, and who changed what.", {}, {}};
    part.schemas = {
        {"UserRole", choice({"user", "admin", "superadmin"})},
        {"PeopleSource", choice({"config", "api"})},
        {"User", user()},
        {"ApiKey", api_key()},
        {"AuditLine", audit_line()},
    };
    part.operations = user_operations();
    for (Operation& operation : key_operations()) {
        part.operations.push_back(std::move(operation));
    }
    return part;
}

}  // namespace ars::server::openapi
