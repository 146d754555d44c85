// Any bytes as the body of each request that has one: a value, or a refusal that a client can read.
// The first byte says which request; an odd one sends an Idempotency-Key, the first line of the
// rest.
#include "server/dto_checkpoints.hpp"
#include "server/dto_invocation.hpp"
#include "server/dto_resume.hpp"
#include "server/dto_runs.hpp"
#include "server/dto_threads.hpp"
#include "server/dto_user_env.hpp"
#include "tests/fuzz/scratch.hpp"

#include <boost/json/parse.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

using namespace ars::server;
namespace json = boost::json;

constexpr std::size_t kAnswerBytes = 256 * 1024;  // beside what it cites of the body

template <class T>
void check(const std::expected<T, HttpResponse>& read, const HttpRequest& request) {
    if (read) {
        return;
    }
    const HttpResponse& refusal = read.error();
    require(refusal.body.size() <= kAnswerBytes + 12 * request.body.size());
    const json::object detail = json::parse(refusal.body).at("detail").as_object();
    require(!detail.at("code").as_string().empty() && !detail.at("message").as_string().empty());
    require(refusal.status == 400 || refusal.status == 422);
    if (refusal.status == 400 && !detail.contains("key")) {
        const auto lines = std::count(request.body.begin(), request.body.end(), '\n') + 1;
        const std::int64_t line = detail.at("line").to_number<std::int64_t>();
        const auto column = detail.at("column").to_number<std::size_t>();
        require(line >= 1 && line <= lines);
        require(column >= 1 && column <= request.body.size() + 1);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) {
        return 0;
    }
    std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    HttpRequest request;
    request.start(Method::post, "/", true);
    if (data[0] % 2 == 1) {
        const std::string_view key = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(key.size() + 1, text.size()));
        request.add_header("Idempotency-Key", key);
    }
    request.body = text;
    request.user.uid = "u";
    switch (data[0] / 2 % 16) {
        case 0:
            check(read_run_request(request), request);
            break;
        case 1:
            static_cast<void>(is_resume(request));
            break;
        case 2:
            check(read_resume_request(request), request);
            break;
        case 3:
            check(read_agent_call(request), request);
            break;
        case 4:
            check(read_call_result_query(request), request);
            break;
        case 5:
            check(read_new_thread(request), request);
            break;
        case 6:
            check(read_thread_change(request), request);
            break;
        case 7:
            check(read_fork(request), request);
            break;
        case 8:
            check(read_user_env(request), request);
            break;
        default:
            break;
    }
    return 0;
}
