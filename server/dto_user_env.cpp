#include "server/dto_user_env.hpp"

#include "base/fields.hpp"
#include "base/text.hpp"
#include "server/json_body.hpp"

#include <fmt/format.h>

namespace ars::server {

namespace json = boost::json;

namespace {

struct EnvBody {
    json::value env;
};

const base::Fields<EnvBody>& env_body_fields() {
    static const auto fields = base::Fields<EnvBody>{}.any(
        "env",
        &EnvBody::env,
        {.required = true, .doc = "All variables by name, in the place of those there are."}
    );
    return fields;
}

// Names are refused with 400, as clients know it; what they stand for with 422.
HttpResponse bad_name(std::string_view code, std::string_view name, std::string_view what) {
    const std::string shown(base::utf8_head(name, runs::kUserVariableNameBytes));
    return error_response(
        400, code, fmt::format("the variable \"{}\" {}", shown, what), {{"key", shown}}
    );
}

std::string wrong_with(const json::value& value) {
    if (!value.is_string()) {
        return "must be a text: write numbers and booleans in quotes";
    }
    const std::string_view text = value.get_string();
    if (text.size() > runs::kUserVariableBytes) {
        return fmt::format("has {} bytes, at most {} fit", text.size(), runs::kUserVariableBytes);
    }
    return text.find('\0') == std::string_view::npos ? "" : "has a NUL";
}

}  // namespace

std::expected<runs::Variables, HttpResponse> read_user_env(const HttpRequest& request) {
    auto body = read_body(request, env_body_fields());
    if (!body) {
        return std::unexpected(std::move(body.error()));
    }
    std::vector<base::Fault> faults;
    const base::FieldPlace place = base::FieldPlace{{}, faults, {}}.at("env");
    const json::object* entries = base::field_kinds::object(body->env, place);
    if (entries == nullptr) {
        return std::unexpected(faults_response(faults));
    }
    runs::Variables out;
    std::size_t bytes = 0;
    for (const auto& entry : *entries) {
        const std::string name(base::trim(entry.key()));
        if (name.size() > runs::kUserVariableNameBytes) {
            return std::unexpected(bad_name(
                "invalid_env_key",
                name,
                fmt::format("has a name of more than {} bytes", runs::kUserVariableNameBytes)
            ));
        }
        if (const std::string wrong = base::check_variable_name(name); !wrong.empty()) {
            return std::unexpected(bad_name("invalid_env_key", name, wrong));
        }
        if (out.contains(name)) {
            return std::unexpected(bad_name("duplicate_env_key", name, "is there twice"));
        }
        std::string& value = out[name];
        if (std::string wrong = wrong_with(entry.value()); !wrong.empty()) {
            place.at(name).fault(std::move(wrong));
        } else {
            value = entry.value().get_string();
        }
        bytes += name.size() + value.size();
    }
    if (out.size() > runs::kUserVariables) {
        place.fault(
            fmt::format("has {} variables, at most {} fit", out.size(), runs::kUserVariables)
        );
    }
    if (bytes > runs::kUserEnvBytes) {
        place.fault(
            fmt::format(
                "has {} bytes of names and values, at most {} fit", bytes, runs::kUserEnvBytes
            ),
            "put what is large into a file of the workspace"
        );
    }
    if (!faults.empty()) {
        return std::unexpected(faults_response(faults));
    }
    return out;
}

json::object user_env_to_json(const runs::Variables& variables) {
    json::object env;
    for (const auto& [name, value] : variables) {
        env[name] = value;
    }
    return {{"env", std::move(env)}};
}

}  // namespace ars::server
