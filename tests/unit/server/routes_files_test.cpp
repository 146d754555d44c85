// /api/viewer/filesystem over a real connection and a real workspace.
#include "server/dto_files.hpp"
#include "tests/unit/fsmount/workspace_fixture.hpp"
#include "tests/unit/server/server_fixture.hpp"

#include <boost/json/serialize.hpp>

#include <sys/stat.h>
#include <sys/un.h>

namespace ars::server::testing {
namespace {

constexpr std::string_view kBase = "/api/viewer/filesystem";

class FileRoutesTest : public ServerTest {
  protected:
    FileRoutesTest() {
        files_.offload = &offload_;
        files_.workspace_of = [this](const std::string& uid) {
            return fsmount::open_user_workspace(
                place_.path() + "/users", place_.path() + "/skills", uid
            );
        };
    }
    void begin(HttpLimits limits = {}) {
        start(limits, two_keys());
        const RawResponse made =
            post("/api/chat/thread", R"({"agent_id":"default-chatbot"})", alice());
        thread_ = std::string(made.json().at("id").as_string());
    }
    static std::string alice() { return "Authorization: Bearer alice-secret\r\n"; }
    static std::string bob() { return "Authorization: Bearer bob-secret\r\n"; }
    [[nodiscard]] std::string at(std::string_view route, std::string_view path) const {
        return std::string(kBase) + std::string(route) + "?thread_id=" + thread_ +
               "&path=" + percent_encode(path);
    }
    [[nodiscard]] std::string work(const std::string& rest) const {
        return place_.path() + "/users/alice/workspace/projects/p1/" + rest;
    }
    [[nodiscard]] RawResponse send(
        const std::string& verb,
        const std::string& target,
        const std::string& body = {},
        std::string headers = alice()
    ) const {
        RawClient client = connect();
        headers += "Content-Length: " + std::to_string(body.size()) + "\r\n";
        client.send(
            verb + " " + target + " HTTP/1.1\r\nHost: 127.0.0.1\r\n" + headers + "\r\n" + body
        );
        return client.read_response();
    }
    [[nodiscard]] RawResponse put(const std::string& path, const std::string& body) const {
        return send("PUT", at("/file", path), body);
    }
    [[nodiscard]] RawResponse fetch(const std::string& path) const {
        return get(at("/file", path), alice());
    }
    static std::string part(const std::string& name, const std::string& text) {
        return "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + text +
               "\r\n";
    }
    [[nodiscard]] RawResponse upload(const std::string& form, const std::string& query = {}) const {
        return send(
            "POST",
            std::string(kBase) + "/upload" + query,
            form + "--b--\r\n",
            alice() + "Content-Type: multipart/form-data; boundary=b\r\n"
        );
    }
    [[nodiscard]] std::string form_head(const std::string& parent = "/") const {
        return part("thread_id", thread_) + part("parent_path", parent);
    }
    static std::string file(const std::string& name, const std::string& text) {
        return part("file\"; filename=\"" + name, text);
    }
    [[nodiscard]] std::vector<std::string> names(const std::string& path = "/") const {
        const boost::json::value tree = get(at("/tree", path), alice()).json();
        std::vector<std::string> out;
        for (const auto& entry : tree.at("entries").as_array()) {
            out.emplace_back(entry.at("path").as_string());
        }
        return out;
    }
    using Names = std::vector<std::string>;

    fsmount::TemporaryDirectory place_;
    base::Offload offload_{2};
    std::string thread_;
};

TEST_F(FileRoutesTest, AFileGoesInAndComesOutByteForByte) {
    begin();
    EXPECT_EQ(names(), Names{});  // before anything was made
    std::string bytes;
    for (int i = 0; i < 300'000; ++i) {
        bytes += static_cast<char>(i * 7 % 256);
    }
    const RawResponse made = put("/in/data.bin", bytes);
    ASSERT_EQ(made.status, 201) << made.body;
    const boost::json::value shown = made.json();
    const auto& entry = shown.at("entry").as_object();
    EXPECT_EQ(entry.at("path"), "/in/data.bin");
    EXPECT_EQ(entry.at("name"), "data.bin");
    EXPECT_EQ(entry.at("size"), 300'000);
    EXPECT_EQ(entry.at("is_dir"), false);
    const RawResponse got = get(std::string(entry.at("artifact_url").as_string()), alice());
    EXPECT_EQ(got.status, 200);
    EXPECT_EQ(got.body, bytes);
    EXPECT_EQ(got.headers.at("content-length"), "300000");
    EXPECT_EQ(got.headers.at("content-type"), "application/octet-stream");
    EXPECT_EQ(got.headers.at("content-disposition"), "attachment; filename*=UTF-8''data.bin");
    EXPECT_EQ(put("/in/data.bin", "new").status, 200);
    EXPECT_EQ(fetch("in/data.bin").body, "new");
    EXPECT_EQ(put("/empty", "").status, 201);
    EXPECT_EQ(fetch("/empty").headers.at("content-length"), "0");
    EXPECT_EQ(names(), (Names{"/empty", "/in/"}));
    EXPECT_EQ(names("/in/"), (Names{"/in/data.bin"}));
}

TEST_F(FileRoutesTest, ABodyInChunksIsWrittenWhole) {
    begin();
    RawClient client = connect();
    client.send(
        "PUT " + at("/file", "/chunked") + " HTTP/1.1\r\nHost: 127.0.0.1\r\n" + alice() +
        "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    const std::string wire = "5\r\nhello\r\n1;x=y\r\n \r\n5\r\nworld\r\n0\r\n\r\n";
    for (const char c : wire) {
        client.send({&c, 1});
    }
    EXPECT_EQ(client.read_response().status, 201);
    EXPECT_EQ(fetch("/chunked").body, "hello world");
    // The connection serves on.
    client.request("GET /api/system/health");
    EXPECT_EQ(client.read_response().status, 200);
}

TEST_F(FileRoutesTest, K150PathsThatLeadOutAre403AndMissingOnes404) {
    begin();
    ASSERT_EQ(put("/a.txt", "a").status, 201);
    ASSERT_EQ(::symlink("/etc/passwd", work("passwd").c_str()), 0);
    ASSERT_EQ(::symlink("../p2", work("p2").c_str()), 0);
    ASSERT_EQ(::symlink("a.txt", work("inside").c_str()), 0);
    for (const char* path :
         {"/../p2/x",
          "a/../../x",
          "/home/gem/user-data/projects/p1/a.txt",
          "/home/gem",
          "/home/gem/skills/x",
          "passwd",
          "p2/x"}) {
        const RawResponse refused = fetch(path);
        EXPECT_EQ(refused.status, 403) << path;
        EXPECT_EQ(refused.code(), "path_escape") << path;
        EXPECT_EQ(put(path, "x").status, path == std::string("passwd") ? 400 : 403) << path;
        EXPECT_EQ(get(at("/tree", path), alice()).status, 403) << path;
    }
    EXPECT_EQ(fetch("inside").body, "a");
    EXPECT_EQ(fetch("missing").status, 404);
    EXPECT_EQ(fetch("a.txt/x").status, 404);
    EXPECT_EQ(get(at("/tree", "a.txt"), alice()).status, 404);
    EXPECT_EQ(get(at("/tree", "missing"), alice()).status, 404);
    EXPECT_EQ(fetch("/").status, 400);
    EXPECT_EQ(put("/", "x").status, 400);
    EXPECT_EQ(put("/dir/", "x").status, 400);
    EXPECT_EQ(fetch(std::string(300, 'n')).status, 422);
    EXPECT_EQ(fetch(std::string("nul\0x", 5)).code(), "invalid_path");
    EXPECT_EQ(get(std::string(kBase) + "/file?thread_id=" + thread_, alice()).status, 422);
    EXPECT_EQ(get(std::string(kBase) + "/file?path=x", alice()).status, 422);
}

TEST_F(FileRoutesTest, WhatIsNoRegularFileIsRefusedAtOnce) {
    begin();
    ASSERT_EQ(put("/a.txt", "a").status, 201);
    ASSERT_EQ(::mkfifo(work("fifo").c_str(), 0600), 0);
    const int server = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s", work("sock").c_str());
    ASSERT_EQ(::bind(server, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::mkdir(work("dir").c_str(), 0700), 0);
    ASSERT_EQ(::symlink("/dev/zero", work("zero").c_str()), 0);
    for (const char* path : {"fifo", "sock", "dir"}) {
        EXPECT_EQ(fetch(path).status, 400) << path;
        EXPECT_EQ(fetch(path).code(), "not_regular_file") << path;
        EXPECT_EQ(put(path, "x").status, 400) << path;
    }
    EXPECT_EQ(fetch("zero").status, 403);
    const RawResponse tree = get(at("/tree", "/"), alice());
    EXPECT_NE(tree.body.find(R"("kind":"other")"), std::string::npos) << tree.body;
    ::close(server);
}

TEST_F(FileRoutesTest, NamesThatAreNoUtf8TravelBothWays) {
    begin();
    ASSERT_EQ(put("/bad\xff name", "x").status, 201);
    EXPECT_EQ(names(), (Names{R"($'/bad\xff name')"}));
    EXPECT_EQ(fetch(R"($'/bad\xff name')").body, "x");
    EXPECT_EQ(fetch("/bad\xff name").body, "x");
    const RawResponse got = fetch("/bad\xff name");
    EXPECT_EQ(got.headers.at("content-disposition"), "attachment; filename*=UTF-8''bad%FF%20name");
    const RawResponse uploaded = upload(form_head() + file("\xfe", "y"));
    EXPECT_EQ(uploaded.status, 201) << uploaded.body;
    EXPECT_EQ(fetch("/\xfe").body, "y");
    const RawResponse removed = send("DELETE", at("/file", "/\xfe"));
    EXPECT_EQ(removed.status, 200);
    EXPECT_EQ(removed.json().at("path"), R"($'/\xfe')");
    EXPECT_EQ(names().size(), 1U);
}

TEST_F(FileRoutesTest, AnotherUsersThreadIsMissing) {
    begin();
    ASSERT_EQ(put("/a.txt", "secret").status, 201);
    const std::string unknown = std::string(kBase) + "/tree?thread_id=nope";
    const RawResponse missing = get(unknown, alice());
    EXPECT_EQ(missing.status, 404);
    const RawResponse foreign = get(at("/tree", "/"), bob());
    EXPECT_EQ(foreign.status, 404);
    EXPECT_EQ(foreign.body, missing.body);
    EXPECT_EQ(get(at("/file", "/a.txt"), bob()).status, 404);
    EXPECT_EQ(get(at("/download", "/a.txt"), bob()).status, 404);
    EXPECT_EQ(send("PUT", at("/file", "/a.txt"), "x", bob()).status, 404);
    EXPECT_EQ(send("DELETE", at("/file", "/a.txt"), "", bob()).status, 404);
    EXPECT_EQ(
        send(
            "POST",
            std::string(kBase) + "/upload",
            form_head() + file("b.txt", "x") + "--b--\r\n",
            bob() + "Content-Type: multipart/form-data; boundary=b\r\n"
        )
            .status,
        404
    );
    EXPECT_EQ(get(at("/file", "/a.txt")).status, 401);
    EXPECT_EQ(fetch("/a.txt").body, "secret");
    EXPECT_EQ(names(), (Names{"/a.txt"}));
}

TEST_F(FileRoutesTest, K150AnUploadIsWrittenWholeOrNotAtAll) {
    begin();
    const RawResponse made = upload(form_head() + file("a.txt", "a") + file("dir/b.txt", "b"));
    ASSERT_EQ(made.status, 201) << made.body;
    EXPECT_EQ(made.json().at("entries").as_array().size(), 2U);
    EXPECT_EQ(names(), (Names{"/a.txt", "/b.txt"}));
    // The fields may come last.
    EXPECT_EQ(upload(file("last.txt", "l") + form_head()).status, 201);
    EXPECT_EQ(upload(file("query.txt", "q"), "?thread_id=" + thread_).status, 201);
    ASSERT_EQ(::symlink("nowhere", work("link").c_str()), 0);
    ASSERT_EQ(::mkdir(work("dir").c_str(), 0700), 0);
    const Names before = names();
    const RawResponse taken = upload(form_head() + file("new.txt", "n") + file("a.txt", "x"));
    EXPECT_EQ(taken.status, 409);
    EXPECT_EQ(taken.code(), "already_exists");
    EXPECT_EQ(
        upload(form_head() + file("n.txt", "n") + file("n.txt", "x")).code(), "duplicate_name"
    );
    EXPECT_EQ(upload(form_head() + file("link", "x")).status, 409);
    EXPECT_EQ(upload(form_head() + file("dir", "x")).status, 409);
    EXPECT_EQ(upload(form_head("/a.txt") + file("n", "x")).status, 404);
    EXPECT_EQ(upload(form_head("/missing") + file("n", "x")).status, 404);
    EXPECT_EQ(upload(form_head("/../p2") + file("n", "x")).status, 403);
    EXPECT_EQ(upload(form_head() + file("..", "x")).code(), "bad_file_name");
    EXPECT_EQ(upload(form_head()).status, 422);
    EXPECT_EQ(upload(file("n", "x")).status, 422);
    EXPECT_EQ(upload(form_head() + "--b\r\nbroken").code(), "bad_multipart");
    EXPECT_EQ(send("POST", std::string(kBase) + "/upload", "x").status, 415);
    std::string many = form_head();
    for (int i = 0; i < 51; ++i) {
        many += file(std::to_string(i), "x");
    }
    EXPECT_EQ(upload(many).code(), "too_many_files");
    EXPECT_EQ(names(), before);
    EXPECT_EQ(fetch("/a.txt").body, "a");
}

TEST_F(FileRoutesTest, AHundredMebibytesAreTheBoundOfWhatComesIn) {
    begin();
    RawClient declared = connect();
    declared.send(
        "PUT " + at("/file", "/big") + " HTTP/1.1\r\nHost: 127.0.0.1\r\n" + alice() +
        "Content-Length: 104857601\r\n\r\n"
    );
    const RawResponse refused = declared.read_response();
    EXPECT_EQ(refused.status, 413);
    EXPECT_EQ(refused.code(), "body_too_large");
    RawClient chunked = connect();
    chunked.send(
        "PUT " + at("/file", "/big") + " HTTP/1.1\r\nHost: 127.0.0.1\r\n" + alice() +
        "Transfer-Encoding: chunked\r\n\r\n"
    );
    const std::string chunk = "100000\r\n" + std::string(1 << 20, 'x') + "\r\n";
    for (int i = 0; i < 101 && chunked.send(chunk); ++i) {
    }
    EXPECT_EQ(chunked.read_response().status, 413);
    EXPECT_EQ(names(), Names{});
    // A file of the form is bounded, not only the form.
    EXPECT_EQ(
        upload(form_head() + file("big", std::string((100U << 20U) + 1, 'x'))).code(),
        "file_too_large"
    );
    EXPECT_EQ(names(), Names{});
}

TEST_F(FileRoutesTest, AGibibyteIsTheBoundOfWhatGoesOut) {
    begin();
    ASSERT_EQ(put("/sparse", "x").status, 201);
    ASSERT_EQ(::truncate(work("sparse").c_str(), (1LL << 30) + 1), 0);
    const RawResponse refused = fetch("/sparse");
    EXPECT_EQ(refused.status, 413);
    EXPECT_EQ(refused.code(), "file_too_large");
    ASSERT_EQ(::truncate(work("sparse").c_str(), 1LL << 30), 0);
    RawClient client = connect();
    client.request("HEAD " + at("/file", "/sparse"), alice());
    const RawResponse head = client.read_head();
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.headers.at("content-length"), "1073741824");
}

TEST_F(FileRoutesTest, AReaderThatLeavesAndAFileThatShrinksHarmNobody) {
    begin();
    ASSERT_EQ(put("/sparse", "x").status, 201);
    ASSERT_EQ(::truncate(work("sparse").c_str(), 1LL << 30), 0);
    {
        RawClient client = connect();
        client.request("GET " + at("/file", "/sparse"), alice());
        EXPECT_EQ(client.read_head().status, 200);
        EXPECT_EQ(client.read_exactly(1 << 20).size(), 1U << 20U);
    }
    EXPECT_TRUE(eventually([this] { return stats_.streams == 0; }));
    RawClient client = connect();
    client.request("GET " + at("/file", "/sparse"), alice());
    EXPECT_EQ(client.read_head().status, 200);
    ASSERT_EQ(::truncate(work("sparse").c_str(), 0), 0);
    EXPECT_LT(client.read_to_end().size(), 1U << 30U);
    EXPECT_EQ(fetch("/sparse").status, 200);
}

TEST_F(FileRoutesTest, AnUploadThatStopsEndsAndLeavesNothing) {
    HttpLimits limits;
    limits.read_timeout = base::milliseconds(200);
    begin(limits);
    RawClient slow = connect();
    slow.send(
        "PUT " + at("/file", "/slow") + " HTTP/1.1\r\nHost: 127.0.0.1\r\n" + alice() +
        "Content-Length: 100\r\n\r\nhalf"
    );
    EXPECT_EQ(slow.read_response().status, 408);
    {
        RawClient gone = connect();
        gone.send(
            "PUT " + at("/file", "/gone") + " HTTP/1.1\r\nHost: 127.0.0.1\r\n" + alice() +
            "Content-Length: 100\r\n\r\nhalf"
        );
    }
    EXPECT_TRUE(eventually([this] { return stats_.connections == 0; }));
    EXPECT_EQ(names(), Names{});
}

TEST_F(FileRoutesTest, K147DeletesFilesLinksAndTreesButNotTheRoot) {
    begin();
    ASSERT_EQ(put("/dir/a.txt", "a").status, 201);
    ASSERT_EQ(put("/b.txt", "b").status, 201);
    ASSERT_EQ(::symlink("../../..", work("up").c_str()), 0);
    for (const char* root : {"/", "", ".", "//"}) {
        const RawResponse refused = send("DELETE", at("/file", root));
        EXPECT_EQ(refused.status, 400) << root;
        EXPECT_EQ(refused.code(), "is_root") << root;
    }
    EXPECT_EQ(send("DELETE", at("/file", "up/alice")).status, 403);
    EXPECT_EQ(send("DELETE", at("/file", "/missing")).status, 404);
    for (const char* path : {"/dir", "/b.txt", "/up"}) {
        EXPECT_EQ(send("DELETE", at("/file", path)).status, 200) << path;
    }
    EXPECT_EQ(names(), Names{});
    EXPECT_TRUE(std::filesystem::exists(place_.path() + "/users/alice/workspace"));
}

TEST_F(FileRoutesTest, MakesDirectories) {
    begin();
    const auto make = [this](const std::string& parent, const std::string& name) {
        const std::string body = boost::json::serialize(
            boost::json::object{{"thread_id", thread_}, {"parent_path", parent}, {"name", name}}
        );
        return post(std::string(kBase) + "/directory", body, alice());
    };
    const RawResponse made = make("/", "a");
    ASSERT_EQ(made.status, 201) << made.body;
    EXPECT_EQ(made.json().at("entry").at("path"), "/a/");
    EXPECT_EQ(make("/a/", "b").status, 201);
    EXPECT_EQ(names("/a"), (Names{"/a/b/"}));
    EXPECT_EQ(make("/", "a").status, 409);
    EXPECT_EQ(make("/missing", "x").status, 404);
    EXPECT_EQ(make("/", "..").status, 403);
    EXPECT_EQ(make("/", "x/y").status, 422);
    EXPECT_EQ(make("/..", "x").status, 403);
}

TEST_F(FileRoutesTest, ALongDirectoryComesInPages) {
    begin();
    ASSERT_EQ(put("/x", "").status, 201);
    for (int i = 0; i < 1500; ++i) {
        std::ofstream(work("f" + std::to_string(10000 + i)));
    }
    const RawResponse first = get(at("/tree", "/"), alice());
    EXPECT_EQ(first.json().at("total"), 1501);
    EXPECT_EQ(first.json().at("entries").as_array().size(), 1000U);
    const std::string next(first.json().at("next").as_string());
    const RawResponse second = get(at("/tree", "/") + "&after=" + percent_encode(next), alice());
    EXPECT_EQ(second.json().at("entries").as_array().size(), 501U);
    EXPECT_TRUE(second.json().at("next").is_null());
}

TEST_F(FileRoutesTest, BeforeTheTierIsSettledNobodyKnowsWhereFilesAre) {
    begin();
    on_server([this] { runs_->ready = false; });
    EXPECT_EQ(put("/a.txt", "a").status, 503);
    EXPECT_EQ(fetch("/a.txt").code(), "not_ready");
    EXPECT_EQ(upload(form_head() + file("a.txt", "a")).status, 503);
    on_server([this] { runs_->ready = true; });
    EXPECT_EQ(names(), Names{});
}

TEST_F(FileRoutesTest, AFullDiskIs507) {
    const RawResponse full = [] {
        RawResponse out;
        const HttpResponse response =
            file_error_response(fsmount::file_error("/home/gem/user-data/x", ENOSPC));
        out.status = response.status;
        out.body = response.body;
        return out;
    }();
    EXPECT_EQ(full.status, 507);
    EXPECT_EQ(full.code(), "no_space");
}

}  // namespace
}  // namespace ars::server::testing
