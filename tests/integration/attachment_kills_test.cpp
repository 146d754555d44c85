// A server that is killed at each commit between an upload and the end of the run that uses it.
#include "tests/integration/failpoint_fixture.hpp"

#include <filesystem>

namespace ars::tests {
namespace {

namespace json = boost::json;

class AttachmentStory : public Story {
  public:
    void set_up(Server& server) override {
        server.write("scripts/main.yaml", R"(agent: main
turns:
  - tool_calls: [{id: read, tool: execute, args: {command: "cat uploads/*/note.txt"}}]
  - text: "{{user}} {{read}}"
)");
    }
    void tell(Server& server) override {
        // What was answered once stays: it is not sent again.
        if (uploaded_.empty()) {
            uploaded_ = upload(server, "note.txt");
        }
        if (confirmed_.empty()) {
            confirmed_ = upload(server, "other.txt");
        }
        if (thread_.empty()) {
            const HttpReply made = post(
                server, "/api/chat/thread", {{"agent_id", "main"}, {"request_id", "the-thread"}}
            );
            thread_ = text(made.json().as_object(), "id");
        }
        const std::string at = "/api/chat/thread/" + thread_ + "/attachments";
        wait_until(server, [&] {
            const int status =
                post(server, at + "/confirm", {{"file_ids", json::array{confirmed_}}}).status;
            return status == 200 || (removing_ && status == 404);
        });
        const HttpReply started = post(
            server,
            "/api/agent/runs",
            {{"agent_slug", "main"},
             {"query", "read it"},
             {"thread_id", thread_},
             {"meta",
              {{"request_id", "the-one-run"}, {"attachment_file_ids", json::array{uploaded_}}}}}
        );
        if (started.status != 202) {
            throw std::runtime_error(started.body);
        }
        run_ = started.json().as_object();
        result_ = server.wait_for_end(text(run_, "run_id"));
        const std::string target = at + "/" + confirmed_;
        removing_ = true;
        const HttpReply removed = http(server.port(), "DELETE", target);
        if (removed.status != 200 && removed.status != 404) {  // 404: by an earlier telling
            throw std::runtime_error(removed.body);
        }
    }
    void check(Server& server) override {
        EXPECT_EQ(result_.at("status"), "completed") << json::serialize(result_);
        EXPECT_NE(text(result_, "output").find("what was uploaded"), std::string::npos)
            << json::serialize(result_);
        const json::value listed =
            get(server, "/api/chat/thread/" + thread_ + "/attachments").json();
        ASSERT_EQ(listed.at("attachments").as_array().size(), 1U) << json::serialize(listed);
        const object note = listed.at("attachments").at(0).as_object();
        EXPECT_EQ(text(note, "file_id"), uploaded_);
        EXPECT_EQ(note.at("message_ids").as_array().size(), 1U);
        // Its bytes are in one place, and those of what nobody was told of wait for their expiry.
        const std::string path =
            text(note, "path").substr(std::string("/home/gem/user-data").size());
        EXPECT_TRUE(std::filesystem::exists(server.workspace("local") + path)) << path;
        const std::filesystem::directory_iterator waiting(server.data_dir() + "/attachments");
        EXPECT_LE(std::distance(begin(waiting), end(waiting)), 1);
    }

  private:
    static std::string upload(Server& server, const std::string& name) {
        const HttpReply reply = http(
            server.port(),
            "POST",
            "/api/chat/attachments/tmp",
            "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" + name +
                "\"\r\n\r\nwhat was uploaded\r\n--b--\r\n",
            {{"Content-Type", "multipart/form-data; boundary=b"}}
        );
        if (reply.status != 201) {
            throw std::runtime_error(reply.body);
        }
        return text(reply.json().at("attachment").as_object(), "file_id");
    }

    std::string uploaded_;
    std::string confirmed_;
    std::string thread_;
    bool removing_ = false;
    object run_;
    object result_;
};

class AttachmentKills : public ::testing::TestWithParam<std::string> {};

TEST_P(AttachmentKills, K106EveryCommitFromAnUploadToItsRunCanBeTheLast) {
    tell_at_every_commit<AttachmentStory>(GetParam(), 10);
}

INSTANTIATE_TEST_SUITE_P(
    Moments,
    AttachmentKills,
    ::testing::Values("before", "after"),
    [](const auto& moment) { return moment.param; }
);

}  // namespace
}  // namespace ars::tests
