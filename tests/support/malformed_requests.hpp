// Requests of a hostile or broken client, each wrong in one way, for every route of the server's
// own OpenAPI document. Random, but the same for the same seed.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <cstddef>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace ars::tests {

struct Malformed {
    std::string kind;
    std::string bytes;
    // What the last answer must be; 0: any 4xx, or a closed connection without an answer.
    int status = 0;
    bool ends = false;        // the client sends nothing more, and says so
    bool after_good = false;  // a good request stands before it
};

class MalformedRequests {
  public:
    MalformedRequests(const boost::json::value& openapi, unsigned seed);

    // False when the document had too little in it for a test.
    [[nodiscard]] bool knows_the_api() const {
        return bodies_.size() >= 8 && properties_.size() >= 30 && !numbers_.empty();
    }
    Malformed next();

  private:
    struct Target {
        std::string path;
        std::vector<std::string> methods;
    };
    struct Body {
        std::string method;
        std::string path;
        bool closed = false;  // takes no other keys than its own
    };
    struct Property {
        std::string method;
        std::string path;
        std::string name;
        std::vector<std::string> types;
        bool listed = false;  // one of some words
    };
    struct Number {
        std::string path;
        std::string name;
    };

    void add_bodies(
        const boost::json::value& openapi,
        const std::string& path,
        const std::string& method,
        const boost::json::value& operation
    );
    void add_property(
        const std::string& method,
        const std::string& path,
        std::string_view name,
        const boost::json::object& schema
    );
    void add_numbers(const std::string& path, const boost::json::value& operation);

    std::size_t below(std::size_t bound);
    std::string word(std::size_t size);
    std::string bytes(std::size_t size);
    template <class List>
    auto& pick(List& list) {
        return *(std::begin(list) + static_cast<std::ptrdiff_t>(below(std::size(list))));
    }

    // Wrong for what the API takes (malformed_requests.cpp) and as HTTP (malformed_heads.cpp).
    Malformed bad_json();
    Malformed wrong_type();
    Malformed unknown_field();
    Malformed wrong_method();
    Malformed wrong_media();
    Malformed bad_upload();
    Malformed bad_field();
    Malformed bad_target();
    Malformed bad_query();
    Malformed bad_head();
    Malformed head_bomb();
    Malformed smuggling();
    Malformed bad_chunk();
    Malformed too_much_body();
    Malformed cut_off();
    Malformed noise();
    Malformed noise_after_a_good_one();

    std::mt19937 random_;
    std::vector<Target> targets_;
    std::vector<Body> bodies_;
    std::vector<Property> properties_;
    std::vector<Number> numbers_;
};

// "GET /path" as a request with these header lines.
[[nodiscard]] std::string request_head(const std::string& line, const std::string& fields = {});
[[nodiscard]] std::string request_with_body(
    const std::string& method, const std::string& path, const std::string& body
);
// A body that would be good enough to be read.
inline constexpr std::string_view kSoundBody =
    R"({"agent_slug": "main", "query": "hello", "title": "t"})";

}  // namespace ars::tests
