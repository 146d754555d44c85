// Walks a server's API by its own document: every answer is held against what GET /openapi.json
// promises for that operation and status, and the first good call of each operation is preceded by
// the bad ones that its parameters and body allow. What differs is a test failure.
#pragma once

#include "tests/support/http.hpp"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace ars::tests {

struct ApiCall {
    std::string operation;
    std::map<std::string, std::string> path = {};
    std::map<std::string, std::string> query = {};
    boost::json::value body = nullptr;  // null: `bytes`, if any
    std::string bytes = {};
    std::string content_type = {};
    int status = 200;
    // Query parameters that name a thing: of another name the answer is 404.
    std::vector<std::string> names = {};
    // The same for keys of the body.
    std::vector<std::string> body_names = {};
    Headers headers = {};
    // What another name in the path answers, where that is not 404.
    std::map<std::string, int> path_status = {};
};

class ApiWalk {
  public:
    // Fetches the document. `credentials` go with every call.
    ApiWalk(int port, Headers credentials);

    [[nodiscard]] const boost::json::value& document() const { return document_; }
    // operationId -> {method, path, operation}
    struct Known {
        std::string method;
        std::string path;
        const boost::json::object* operation = nullptr;
    };
    [[nodiscard]] const std::map<std::string, Known>& operations() const { return operations_; }

    // The answer's JSON; null when it is none.
    boost::json::value call(ApiCall call);
    // Sends all that a body can have wrong by its schema. Part of the first good call() already;
    // for the other kinds of body of the same operation.
    void refuse_bad_bodies(const ApiCall& good);
    // Events of a stream that is read elsewhere.
    void check_events(const std::string& operation, const std::vector<SseEvent>& events);

    [[nodiscard]] std::size_t requests() const { return requests_; }
    // Operations without a good call, and those that could fail and never did.
    [[nodiscard]] std::vector<std::string> gaps() const;

  private:
    HttpReply send(const ApiCall& call, bool with_key = true);
    HttpReply checked(const ApiCall& call, bool with_key = true);
    void check_answer(const ApiCall& call, const HttpReply& reply);
    void check_json(
        const std::string& what, const boost::json::value& media, const HttpReply& reply
    );
    void refuse_bad_paths(const ApiCall& good);
    void refuse_bad_queries(const ApiCall& good);
    // The object schema that a body follows: behind references, and of several the one that fits.
    [[nodiscard]] boost::json::object fitting(
        const boost::json::value& schema, const boost::json::value& sent
    ) const;
    // 422 whose faults name `place`, or what is below it.
    void expect_fault(const ApiCall& bad, const std::string& place);

    int port_;
    Headers credentials_;
    boost::json::value document_;
    std::map<std::string, Known> operations_;
    std::size_t requests_ = 0;
    std::set<std::string> good_;
    std::map<std::string, std::set<int>> failed_;  // statuses, without 401
};

}  // namespace ars::tests
