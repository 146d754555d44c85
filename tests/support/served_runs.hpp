// What tests of runs behind a real server share: sending, looking, and waiting for what must come.
#pragma once

#include "tests/support/server.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace ars::tests {

std::string text(const boost::json::value& object, std::string_view key);

class ServedRuns : public ::testing::Test {
  protected:
    // To the agent "main", with more keys of the body.
    HttpReply send(const std::string& query, boost::json::object more = {});
    // The result of a message to a thread.
    boost::json::object finish(const std::string& query, const std::string& thread);

    boost::json::value record(const std::string& run);
    std::vector<SseEvent> events(const std::string& run);
    boost::json::value thread(const std::string& id);
    boost::json::array history(const std::string& thread);
    boost::json::value state(const std::string& thread);
    // The thread's directory on the host.
    std::string workdir(const std::string& thread);
    // Results of the thread's calls, of one tool or of all, oldest first; "" of an open one.
    std::vector<std::string> outputs(const std::string& thread, std::string_view tool = {});

    // Each of them fails the test when it does not come within a minute.
    void wait_for_status(const std::string& run, std::string_view status);
    void wait_for_file(const std::string& path);
    // What a killed server held dies by itself.

    void expect_no_open_calls(const std::string& thread);

    Server server_;
};

}  // namespace ars::tests
