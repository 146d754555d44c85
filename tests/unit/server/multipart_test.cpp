#include "server/multipart.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

namespace ars::server {
namespace {

// A body that arrives `size` bytes at a time.
class SlicedBody final : public HttpPeer {
  public:
    SlicedBody(std::string body, std::size_t size) : body_(std::move(body)), size_(size) {}
    base::Task<base::Result<std::string_view>> read_body() override {
        const std::string_view rest = std::string_view(body_).substr(at_);
        const std::string_view piece = rest.substr(0, size_);
        at_ += piece.size();
        co_return piece;
    }
    bool has_left() override { return false; }

  private:
    std::string body_;
    std::size_t size_;
    std::size_t at_ = 0;
};

// "name=content" or "name<filename>=content" a line, or the code of the error.
base::Task<void> read_all(HttpPeer& peer, std::string boundary, std::string& out) {
    MultipartReader reader(peer, boundary);
    for (;;) {
        const auto part = co_await reader.next_part();
        if (!part) {
            out += "!" + part.error().code;
            co_return;
        }
        if (!*part) {
            co_return;
        }
        out += (*part)->name;
        if ((*part)->filename) {
            out += "<" + *(*part)->filename + ">";
        }
        out += "=";
        for (;;) {
            const auto piece = co_await reader.read();
            if (!piece) {
                out += "!" + piece.error().code;
                co_return;
            }
            if (piece->empty()) {
                break;
            }
            out += *piece;
        }
        out += "\n";
    }
}

std::string parsed(
    const std::string& body, std::size_t slice = 1 << 20, std::string boundary = "b"
) {
    SlicedBody peer(body, slice);
    base::asio::io_context io;
    std::string out;
    base::asio::co_spawn(
        io,
        read_all(peer, std::move(boundary), out),
        [](std::exception_ptr error) {
            if (error) {
                std::rethrow_exception(error);
            }
        }
    );
    io.run();
    return out;
}

const std::string kForm =
    "preamble\r\n--b\r\nContent-Disposition: form-data; name=\"thread_id\"\r\n\r\nt1\r\n"
    "--b\r\ncontent-disposition: form-data; name=file; filename=\"a \\\"b\\\" \xff.txt\"\r\n"
    "Content-Type: text/plain\r\n\r\nline\r\n--B\r\n--\r\n-\r\r\n\r\n--b  \r\n"
    "Content-Disposition: form-data; name=\"empty\"; filename=\"\"\r\n\r\n\r\n--b--\r\nepilogue";

TEST(Multipart, TheSamePartsHoweverTheBodyIsCut) {
    const std::string whole = parsed(kForm);
    EXPECT_EQ(
        whole, "thread_id=t1\nfile<a \"b\" \xff.txt>=line\r\n--B\r\n--\r\n-\r\r\n\nempty<>=\n"
    );
    for (std::size_t slice = 1; slice < kForm.size(); ++slice) {
        ASSERT_EQ(parsed(kForm, slice), whole) << "in pieces of " << slice;
    }
}

TEST(Multipart, ACutBodyIsAnErrorWhereverItEnds) {
    const std::size_t last = kForm.find("--b--") + 5;
    for (std::size_t size = 0; size < last; ++size) {
        ASSERT_TRUE(parsed(kForm.substr(0, size)).ends_with("!bad_multipart")) << size;
    }
    EXPECT_EQ(parsed(kForm.substr(0, last)), parsed(kForm));
}

TEST(Multipart, RefusesWhatIsNoForm) {
    const std::string head = "--b\r\nContent-Disposition: form-data; name=x";
    EXPECT_EQ(parsed(""), "!bad_multipart");
    EXPECT_EQ(parsed("--bX\r\n\r\n--b--"), "!bad_multipart");
    EXPECT_EQ(parsed("--b\r\n\r\nx\r\n--b--"), "!bad_multipart");
    EXPECT_EQ(parsed("--b\r\nno colon\r\n\r\nx\r\n--b--"), "!bad_multipart");
    EXPECT_EQ(
        parsed("--b\r\nContent-Disposition: attachment; name=x\r\n\r\nx\r\n--b--"), "!bad_multipart"
    );
    EXPECT_EQ(parsed(head + std::string(5000, 'x') + "\r\n\r\nx\r\n--b--"), "!bad_multipart");
    std::string many = head;
    for (int i = 0; i < 20; ++i) {
        many += "\r\nX-" + std::to_string(i) + ": y";
    }
    EXPECT_EQ(parsed(many + "\r\n\r\nx\r\n--b--"), "!bad_multipart");
    EXPECT_EQ(parsed(head + "\r\n\r\nx\r\n--b--"), "x=x\n");
}

TEST(Multipart, FindsTheBoundary) {
    EXPECT_EQ(multipart_boundary("multipart/form-data; boundary=abc"), "abc");
    EXPECT_EQ(multipart_boundary("Multipart/Form-Data; charset=utf-8; Boundary=\"a b\""), "a b");
    EXPECT_EQ(multipart_boundary("multipart/form-data"), std::nullopt);
    EXPECT_EQ(multipart_boundary("multipart/form-data; boundary="), std::nullopt);
    EXPECT_EQ(multipart_boundary("multipart/mixed; boundary=abc"), std::nullopt);
    EXPECT_EQ(
        multipart_boundary("multipart/form-data; boundary=" + std::string(71, 'x')), std::nullopt
    );
}

}  // namespace
}  // namespace ars::server
