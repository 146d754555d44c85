// What is wrong as HTTP, whatever the server does with it.
#include "tests/support/malformed_requests.hpp"

#include <algorithm>

namespace ars::tests {

Malformed MalformedRequests::bad_target() {
    const std::string raw[] = {
        "/",
        "*",
        "//api/agent",
        "/api//agent",
        "/api/agent/",
        "/api/./agent",
        "/api/../api/agent",
        "/API/agent",
        "/api/agent/%zz",
        "/api/agent/%",
        "/api/agent/%f",
        "/api/agent/%FF",
        "/api/agent/%ED%A0%80",
        "/api/agent/%00",
        "/api/agent/runs/%2e%2e%2f",
        "/api/agent/\xFF",
        "/api/agent/runs/" + std::string(201 + below(3000), 'a'),
        "/" + word(20),
        "/api/agent/runs/" + word(8) + "/" + word(5),
        "http://localhost/" + word(5),
        "http://localhost",
        "https://h/api/" + word(4),
        "localhost:80",
        "api/agent",
        "/api/agent/runs/none?x=1#y",
        "ftp://x/" + word(3)
    };
    return {"bad_target", request_head("GET " + pick(raw)), 404};
}

Malformed MalformedRequests::bad_query() {
    const Number& at = pick(numbers_);
    const std::string broken[] = {"%", "%2", "%zz", "%%", "1%", "%u0031"};
    const std::string numbers[] = {
        "-1", "abc", "1e3", "0x10", "99999999999999999999", "1.5", "1+", "+1", "%31%00", "%FF%FE"
    };
    if (below(2) == 0) {
        const Target& to = pick(targets_);
        return {
            "broken_escape",
            request_head(to.methods.front() + " " + to.path + "?" + word(3) + "=" + pick(broken)),
            400
        };
    }
    // A missing thread is said first where the number belongs to one.
    return {"bad_number", request_head("GET " + at.path + "?" + at.name + "=" + pick(numbers))};
}

Malformed MalformedRequests::bad_head() {
    const std::string health = "GET /api/system/health";
    const std::string wrong[] = {
        health + "\r\n\r\n",
        health + " HTTP/0.9\r\n\r\n",
        health + " HTTP/1.2\r\nHost: a\r\n\r\n",
        health + " HTTP/2.0\r\nHost: a\r\n\r\n",
        health + " HTTP/1.1x\r\nHost: a\r\n\r\n",
        health + " HTTP/11\r\nHost: a\r\n\r\n",
        health + " http/1.1\r\nHost: a\r\n\r\n",
        health + "  HTTP/1.1\r\nHost: a\r\n\r\n",
        health + " HTTP/1.1\nHost: a\n\n",
        health + " HTTP/1.1\r\n\r\n",
        health + " HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        health + " HTTP/1.1\r\nHost : a\r\n\r\n",
        health + " HTTP/1.1\r\nHost: a\r\n" + word(6) + "\r\n\r\n",
        health + " HTTP/1.1\r\nHost: a\r\n: " + word(6) + "\r\n\r\n",
        health + " HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n",
        health + " HTTP/1.1\r\nHost: a\r\nX\x01: a\r\n\r\n",
        health + std::string(" HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n", 31),
        std::string("GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n", 28),
        " " + health + " HTTP/1.1\r\nHost: a\r\n\r\n",
        health + " HTTP/1.1\r\n Host: a\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "\x16\x03\x01\x02\x01" + bytes(200),
        "GET\r\n\r\n",
        "\t\r\n\r\n",
    };
    return {"bad_head", pick(wrong), 400};
}

Malformed MalformedRequests::head_bomb() {
    const std::string line = "GET /api/system/health HTTP/1.1\r\nHost: a\r\n";
    std::string many;
    for (std::size_t i = 0; i < 3000; ++i) {
        many += "X-" + std::to_string(i) + ": y\r\n";
    }
    const std::string bombs[] = {
        line + many + "\r\n",
        line + many,
        line + "X: " + std::string(17'000 + below(60'000), 'x') + "\r\n\r\n",
        line + "X: " + std::string(17'000 + below(60'000), 'x'),
        line + "X-" + std::string(17'000, 'x') + ": y\r\n\r\n",
        "GET /" + std::string(17'000 + below(60'000), 'a') + " HTTP/1.1\r\n\r\n",
        std::string(17'000 + below(60'000), 'G'),
        "GET /?" + std::string(17'000, '&'),
    };
    return {"head_bomb", pick(bombs), 431};
}

Malformed MalformedRequests::smuggling() {
    const std::string fields[] = {
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5, 6\r\n",
        "Content-Length: -5\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: 5 5\r\n",
        "Content-Length: 5;\r\n",
        "Content-Length:\r\n",
        "Content-Length: 18446744073709551621\r\n",
        "Content-Length : 5\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, gzip\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: \x0b"
        "chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding:\r\n",
    };
    return {
        "smuggling",
        request_head("POST /api/agent/runs", "Content-Type: application/json\r\n" + pick(fields)) +
            "0\r\n\r\nGET /api/system/health HTTP/1.1\r\nHost: smuggled\r\n\r\n",
        400
    };
}

Malformed MalformedRequests::bad_chunk() {
    const std::pair<std::string, int> chunks[] = {
        {"x\r\n", 400},
        {"-1\r\n", 400},
        {"\r\n", 400},
        {" 5\r\nhello\r\n", 400},
        {"0x5\r\nhello\r\n\r\n", 400},
        {"5\r\nhello0\r\n\r\n", 400},
        {"5\nhello\n0\n\n\r\n", 400},
        {"fffffffffffffffff\r\n", 400},
        {"5;\x01=\r\nhello\r\n", 400},
        {"0\r\nno colon\r\n\r\n", 400},
        {"1;e=" + std::string(20'000, 'a'), 431},
        {std::string(20'000, '0'), 431},
        {"0\r\nX: " + std::string(20'000, 'a'), 431},
    };
    const auto& [body, status] = pick(chunks);
    return {
        "bad_chunk",
        request_head(
            "POST /api/agent/runs",
            "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
        ) + body,
        status
    };
}

Malformed MalformedRequests::too_much_body() {
    const Body& to = pick(bodies_);
    if (below(20) == 0) {
        // It is sent, in chunks, so that the bound is met on the way.
        std::string body;
        for (int i = 0; i < 80; ++i) {
            body += "10000\r\n" + std::string(0x10000, ' ') + "\r\n";
        }
        const std::string fields =
            "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n";
        return {"huge_body", request_head(to.method + " " + to.path, fields) + body, 413};
    }
    const std::string sizes[] = {"4194305", "999999999999", "18446744073709551615"};
    return {
        "large_length",
        request_head(
            to.method + " " + to.path,
            "Content-Type: application/json\r\nContent-Length: " + pick(sizes) + "\r\n"
        ),
        413
    };
}

// The client stops in the middle of something that was right so far.
Malformed MalformedRequests::cut_off() {
    const Body& to = pick(bodies_);
    const std::string whole = request_with_body(to.method, to.path, std::string(kSoundBody));
    return {"cut_off", whole.substr(0, 1 + below(whole.size() - 1)), 0, true};
}

Malformed MalformedRequests::noise() {
    std::string out = bytes(1 + below(4000));
    out[0] = static_cast<char>(0x80 + below(0x80));  // no method begins so
    return {"noise", out, 400};
}

Malformed MalformedRequests::noise_after_a_good_one() {
    Malformed out = below(2) == 0 ? noise() : bad_head();
    out.kind += "_after_a_good_one";
    out.bytes = request_head("GET /api/system/health") + out.bytes;
    out.after_good = true;
    return out;
}

}  // namespace ars::tests
