// Searching for files over a real connection and a real workspace.
#include "runtime/runs/projects.hpp"
#include "server/dto_files.hpp"
#include "tests/unit/fsmount/workspace_fixture.hpp"
#include "tests/unit/server/server_fixture.hpp"

#include <boost/json/serialize.hpp>

#include <fstream>

namespace ars::server::testing {
namespace {

const std::string kOther = "projects/11111111-2222-3333-4444-555555555555";

class SearchRoutesTest : public ServerTest {
  protected:
    SearchRoutesTest() {
        files_.offload = &offload_;
        files_.workspace_of = [this](const std::string& uid) {
            return fsmount::open_user_workspace(
                place_.path() + "/users", place_.path() + "/skills", uid
            );
        };
    }
    void begin() {
        start({}, two_keys());
        const RawResponse made =
            post("/api/chat/thread", R"({"agent_id":"default-chatbot"})", alice());
        thread_ = std::string(made.json().at("id").as_string());  // in projects/p1
    }
    static std::string alice() { return "Authorization: Bearer alice-secret\r\n"; }
    void file(const std::string& relative) const {
        const std::filesystem::path path = place_.path() + "/users/alice/workspace/" + relative;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << "x";
    }
    using Names = std::vector<std::string>;
    // Paths of what `target` finds; `complete_` is what the answer says.
    Names find(const std::string& target) {
        const RawResponse answer = get(target, alice());
        EXPECT_EQ(answer.status, 200) << answer.body;
        const boost::json::value body = answer.json();
        const bool mentions = body.is_array();
        complete_ = mentions || body.at("complete").as_bool();
        Names out;
        for (const auto& entry : (mentions ? body : body.at("entries")).as_array()) {
            out.emplace_back(entry.at("path").as_string());
        }
        return out;
    }
    [[nodiscard]] std::string of_thread(const std::string& text) const {
        return "/api/viewer/filesystem/search?thread_id=" + thread_ +
               "&query=" + percent_encode(text);
    }
    static std::string of_user(const std::string& text) {
        return "/api/workspace/search?query=" + percent_encode(text);
    }
    [[nodiscard]] std::string mention(const std::string& text, bool with_thread = true) const {
        return "/api/mention/search?query=" + percent_encode(text) +
               (with_thread ? "&thread_id=" + thread_ : "");
    }

    fsmount::TemporaryDirectory place_;
    base::Offload offload_{2};
    std::string thread_;
    bool complete_ = false;
};

TEST_F(SearchRoutesTest, K148FindsNamesInTheDirectoryOfAThread) {
    begin();
    EXPECT_EQ(find(of_thread("report")), Names{});  // before there is a directory
    file("projects/p1/Report.md");
    file("projects/p1/sub/old-report.txt");
    file("projects/p1/reports/data.csv");
    file("projects/p1/.git/report");
    file("report-elsewhere");
    EXPECT_EQ(
        find(of_thread(" REPORT ")), (Names{"/Report.md", "/reports/", "/sub/old-report.txt"})
    );
    EXPECT_TRUE(complete_);
    EXPECT_EQ(find(of_thread("reports/d")), (Names{"/reports/data.csv"}));
    EXPECT_EQ(
        find(of_thread("report") + "&include_hidden=true"),
        (Names{"/Report.md", "/reports/", "/.git/report", "/sub/old-report.txt"})
    );
    EXPECT_EQ(find(of_thread("")), Names{});
    EXPECT_EQ(get(of_thread("x") + "&include_hidden=perhaps", alice()).status, 422);
    EXPECT_EQ(get(of_thread(std::string(257, 'x')), alice()).status, 422);
    EXPECT_EQ(get("/api/viewer/filesystem/search?thread_id=" + thread_, alice()).status, 422);
    EXPECT_EQ(get("/api/viewer/filesystem/search?query=x", alice()).status, 422);
    EXPECT_EQ(get(of_thread("x"), "Authorization: Bearer bob-secret\r\n").status, 404);
}

TEST_F(SearchRoutesTest, K148ResultsAreBounded) {
    begin();
    for (int i = 0; i < 600; ++i) {
        file("projects/p1/" + std::to_string(i % 20) + "/hit" + std::to_string(i));
    }
    EXPECT_EQ(find(of_thread("hit")).size(), 100U);
    EXPECT_FALSE(complete_);
    EXPECT_EQ(find(of_user("hit")).size(), 500U);
    EXPECT_FALSE(complete_);
    EXPECT_EQ(find(of_user("hit59")).size(), 11U);
    EXPECT_TRUE(complete_);
    EXPECT_EQ(find(mention("hit")).size(), 50U);
}

TEST_F(SearchRoutesTest, DirectoriesThatThreadsMadeForThemselvesAreNotTheUsers) {
    begin();
    file(kOther + "/report");
    file("projects/mine/report");
    file("report");
    const Names few{"/report", "/projects/mine/report"};
    EXPECT_EQ(find(of_user("report")), few);
    EXPECT_EQ(
        find(of_user("report") + "&include_unbound_project_dirs=true"),
        (Names{"/report", "/" + kOther + "/report", "/projects/mine/report"})
    );
    const auto tree = [this](const std::string& query) {
        Names names;
        const boost::json::value body = get("/api/workspace/tree?path=" + query, alice()).json();
        for (const auto& entry : body.at("entries").as_array()) {
            names.emplace_back(entry.at("path").as_string());
        }
        EXPECT_EQ(body.at("total"), names.size());
        return names;
    };
    const Names all{"/" + kOther + "/", "/projects/mine/"};
    EXPECT_EQ(tree("projects"), (Names{"/projects/mine/"}));
    EXPECT_EQ(tree("/projects/&include_unbound_project_dirs=true"), all);
    EXPECT_EQ(tree("/" + kOther), (Names{"/" + kOther + "/report"}));  // it was named
    // A project's directory is the user's, as what lies above one.
    for (const char* below : {"", "/deep/er"}) {
        runs::Project wanted;
        wanted.uid = below[0] == 0 ? "bob" : "alice";
        wanted.name = "p";
        wanted.workdir_path = kOther + below;
        wanted.request_id = "r";
        ASSERT_TRUE(store_->write_blocking([&](store::WriteTxn& txn) -> base::Result<void> {
            const auto made = runs::write_project(txn, wanted);
            return made ? base::Result<void>() : std::unexpected(made.error());
        }));
        EXPECT_EQ(tree("projects"), below[0] == 0 ? (Names{"/projects/mine/"}) : all);
    }
}

TEST_F(SearchRoutesTest, MentionsAreOfTheThreadFirstAndWithoutWhatMachinesMade) {
    begin();
    for (const char* path :
         {"projects/p1/src/main.c",
          "projects/p1/main",
          "projects/p1/remain",
          "projects/p1/main.c",
          "projects/p1/main-area/other",
          "projects/p1/node_modules/main.js",
          "projects/p1/.git/main",
          "projects/p1/venv/main",
          "projects/p1/.venv/main",
          "projects/p1/build/main",
          "main.txt",
          "dist/main"}) {
        file(path);
    }
    file(kOther + "/main");
    const std::string at = "/home/gem/user-data/projects/p1/";
    EXPECT_EQ(
        find(mention("main")),
        (Names{
            at + "main",
            at + "main.c",
            at + "main-area/",
            at + "src/main.c",
            at + "remain",
            at + "main-area/other",
            "/home/gem/user-data/main.txt"
        })
    );
    const boost::json::value body = get(mention("main"), alice()).json();
    EXPECT_EQ(
        body.at(0),
        (boost::json::value{
            {"name", "main"}, {"path", at + "main"}, {"is_dir", false}, {"source", "thread"}
        })
    );
    EXPECT_EQ(body.at(6).at("source"), "workspace");
    // Without a thread its directory is one of the workspace.
    EXPECT_EQ(find(mention("main.txt", false)), (Names{"/home/gem/user-data/main.txt"}));
    EXPECT_EQ(find(mention("rEmAin", false)), (Names{at + "remain"}));
    EXPECT_EQ(find(mention("")), Names{});
    EXPECT_EQ(get("/api/mention/search?query=x&thread_id=none", alice()).status, 404);
    EXPECT_EQ(get("/api/mention/search", alice()).status, 422);
}

TEST_F(SearchRoutesTest, TextOfTheWorkspaceIsWrittenAndNothingElse) {
    begin();
    const auto put = [this](const std::string& path, const std::string& body) {
        RawClient client = connect();
        client.send(
            "PUT /api/workspace/file?path=" + percent_encode(path) + " HTTP/1.1\r\nHost: a\r\n" +
            alice() + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body
        );
        return client.read_response();
    };
    for (const char* path : {"a.md", "b.MARKDOWN", "c/d.mdx", "e.txt"}) {
        EXPECT_EQ(put(path, "text").status, 201) << path;
    }
    for (const char* path : {"a.csv", "md", "a.md.sh", "txt/x"}) {
        EXPECT_EQ(put(path, "text").json().at("detail").at("code"), "not_editable") << path;
    }
    // Text in pieces that end anywhere, and what is none.
    std::string text;
    while (text.size() < 400'000) {
        text += "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80";
    }
    EXPECT_EQ(put("long.txt", text).status, 201);
    EXPECT_EQ(get("/api/workspace/file?path=long.txt", alice()).body, text);
    text[300'001] = '\xff';
    EXPECT_EQ(put("long.txt", text).json().at("detail").at("code"), "not_utf8");
    for (const char* bytes :
         {"\xff", "a\xc3", "\xe2\x82", "\xf0\x9f\x98", "\x80", "\xc3(", "\xed\xa0\x80"}) {
        EXPECT_EQ(put("bad.txt", bytes).status, 400) << bytes;
    }
    EXPECT_EQ(get("/api/workspace/file?path=bad.txt", alice()).status, 404);
}

}  // namespace
}  // namespace ars::server::testing
