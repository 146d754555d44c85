#include "runtime/people/people_fields.hpp"

namespace ars::people {

namespace {

constexpr std::int64_t kRequestsMax = 1'000'000;
constexpr std::int64_t kSecond = 1000;
constexpr std::int64_t kHour = 3600 * kSecond;

}  // namespace

const char* to_string(UserRole role) {
    switch (role) {
        case UserRole::user:
            return "user";
        case UserRole::admin:
            return "admin";
        case UserRole::superadmin:
            return "superadmin";
    }
    return "user";
}

const base::Fields<User>& user_fields() {
    static const base::Fields<User> fields =
        base::Fields<User>{}
            .text(
                "uid",
                &User::uid,
                {.required = true, .min = 1, .max = kUidBytes, .doc = "The user's name."}
            )
            .choice(
                "role",
                &User::role,
                {{"user", UserRole::user},
                 {"admin", UserRole::admin},
                 {"superadmin", UserRole::superadmin}},
                {.doc = "admin manages users and keys, superadmin every agent too."}
            )
            .text(
                "department",
                &User::department,
                {.max = kDepartmentBytes, .doc = "For share_config."}
            );
    return fields;
}

const base::Fields<RateLimit>& rate_limit_fields() {
    static const base::Fields<RateLimit> fields =
        base::Fields<RateLimit>{}
            .integer(
                "requests",
                &RateLimit::requests,
                {.required = true, .min = 1, .max = kRequestsMax, .doc = "So many,"}
            )
            .duration(
                "per", &RateLimit::per, {.min = kSecond, .max = kHour, .doc = "in this time."}
            )
            .integer(
                "burst",
                &RateLimit::burst,
                {.min = 1, .max = kRequestsMax, .doc = "At once; absent: `requests`."}
            );
    return fields;
}

}  // namespace ars::people
