#include "server/run_printer.hpp"

#include "base/deadline.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

namespace ars::server {

namespace json = boost::json;

namespace {

constexpr std::string_view kDim = "\033[2m";
constexpr std::string_view kBold = "\033[1m";
constexpr std::string_view kGreen = "\033[32m";
constexpr std::string_view kRed = "\033[31m";
constexpr std::string_view kCyan = "\033[36m";
constexpr std::string_view kReset = "\033[0m";
constexpr std::size_t kSummaryBytes = 72;
constexpr std::size_t kLabelWidth = 16;

std::string_view text_at(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    return value != nullptr && value->is_string() ? std::string_view(value->get_string())
                                                  : std::string_view();
}

const json::object* object_at(const json::object& object, std::string_view key) {
    const json::value* value = object.if_contains(key);
    return value != nullptr ? value->if_object() : nullptr;
}

// One line: control characters become spaces, runs of spaces one.
std::string one_line(std::string_view text, std::size_t max) {
    std::string out;
    for (const char c : text) {
        const bool blank = static_cast<unsigned char>(c) <= ' ';
        if (!blank || (!out.empty() && out.back() != ' ')) {
            out += blank ? ' ' : c;
        }
    }
    if (out.size() <= max) {
        return out;
    }
    return std::string(base::utf8_head(out, max - 3)) + "...";
}

}  // namespace

std::string call_summary(std::string_view tool, const json::object& arguments, std::size_t max) {
    for (const std::string_view key :
         {"command", "file_path", "subagent_slug", "pattern", "path"}) {
        const std::string_view value = text_at(arguments, key);
        if (!value.empty()) {
            const std::string_view more = text_at(arguments, "description");
            return one_line(
                fmt::format("{} {}{}{}", tool, value, more.empty() ? "" : ": ", more), max
            );
        }
    }
    const std::string_view run = text_at(arguments, "run_id");
    return one_line(
        run.empty() ? fmt::format("{} {}", tool, json::serialize(arguments))
                    : fmt::format("{} run {}", tool, run.substr(0, 8)),
        max
    );
}

void RunPrinter::begin(store::RunNo run, int depth, std::string label, std::string_view note) {
    View& view = views_[run];
    view.depth = depth;
    view.label = std::move(label);
    print_line(view, kBold, fmt::format("● {}", note));
}

void RunPrinter::print_line(const View& view, std::string_view colour, std::string_view text) {
    std::string indent;
    for (int i = 0; i < view.depth; ++i) {
        indent += "│ ";
    }
    const std::string label = fmt::format("{:<{}}", view.label, kLabelWidth);
    const std::string line =
        colour_
            ? fmt::format("{}{}{}{} {}{}{}\n", kDim, label, kReset, indent, colour, text, kReset)
            : fmt::format("{}{} {}\n", label, indent, text);
    std::fwrite(line.data(), 1, line.size(), out_);
    std::fflush(out_);
}

void RunPrinter::text(View& view, std::string_view piece) {
    view.line += piece;
    for (std::size_t end = view.line.find('\n'); end != std::string::npos;
         end = view.line.find('\n')) {
        print_line(view, {}, view.line.substr(0, end));
        view.line.erase(0, end + 1);
    }
}

void RunPrinter::flush(View& view) {
    if (!view.line.empty()) {
        print_line(view, {}, view.line);
        view.line.clear();
    }
}

void RunPrinter::event(const store::EventRecord& event) {
    const auto found = views_.find(event.run);
    if (found == views_.end()) {
        return;
    }
    View& view = found->second;
    const json::value parsed = json::parse(event.payload);
    const json::object& payload = parsed.as_object();
    if (event.type == "messages") {
        messages(view, payload);
    } else if (event.type == "custom") {
        custom(view, payload);
    } else if (event.type == "reset") {
        view.line.clear();
        print_line(view, kDim, fmt::format("(starts again: {})", text_at(payload, "reason")));
    } else if (event.type == "error") {
        const json::object* chunk = object_at(payload, "chunk");
        flush(view);
        print_line(
            view,
            kRed,
            fmt::format("✗ {}", chunk != nullptr ? text_at(*chunk, "error_message") : "failed")
        );
    } else if (event.type == "interrupt") {
        interrupt(view, payload);
    } else if (event.type == "end") {
        flush(view);
        const std::string_view status = text_at(payload, "status");
        print_line(view, status == "completed" ? kGreen : kRed, fmt::format("■ {}", status));
    }
}

void RunPrinter::messages(View& view, const json::object& payload) {
    for (const json::value& item : payload.at("items").as_array()) {
        const json::object* stream = object_at(item.as_object(), "stream_event");
        if (stream == nullptr) {
            continue;
        }
        if (text_at(*stream, "type") == "message_delta") {
            text(view, text_at(*stream, "content"));
        } else {
            flush(view);
        }
    }
}

void RunPrinter::interrupt(View& view, const json::object& payload) {
    const json::object* what = object_at(payload, "interrupt");
    if (what == nullptr) {
        return;  // a cancel: its `end` says so
    }
    flush(view);
    const json::object* input = object_at(*what, "arguments");
    const std::string summary = call_summary(
        text_at(*what, "tool_name"), input != nullptr ? *input : json::object{}, kSummaryBytes
    );
    print_line(view, kBold, fmt::format("├─? {}", summary));
}

void RunPrinter::custom(View& view, const json::object& payload) {
    const json::object* chunk = object_at(payload, "chunk");
    const json::object* event = chunk != nullptr ? object_at(*chunk, "event") : nullptr;
    const json::object* data = event != nullptr ? object_at(*event, "data") : nullptr;
    if (data == nullptr) {
        return;
    }
    if (text_at(*data, "event") == "tool-started") {
        const json::object* input = object_at(*data, "input");
        const std::string summary = call_summary(
            text_at(*data, "tool_name"), input != nullptr ? *input : json::object{}, kSummaryBytes
        );
        view.calls[std::string(text_at(*data, "tool_call_id"))] = summary;
        print_line(view, kCyan, fmt::format("├─▸ {}", summary));
    } else if (text_at(*data, "event") == "tool-finished") {
        tool_finished(view, *data);
    }
}

void RunPrinter::tool_finished(View& view, const json::object& data) {
    const auto call = view.calls.extract(std::string(text_at(data, "tool_call_id")));
    const std::string summary =
        call.empty() ? std::string(text_at(data, "tool_name")) : call.mapped();
    const json::object* output = object_at(data, "output");
    const bool failed = output != nullptr && text_at(*output, "status") == "error";
    std::string how;
    if (const json::object* facts = object_at(data, "facts")) {
        if (const json::value* code = facts->if_contains("exit_code")) {
            how = fmt::format("exit {}, ", json::serialize(*code));
        } else if (!text_at(*facts, "status").empty()) {
            how = fmt::format("{}, ", text_at(*facts, "status"));
        }
    }
    const json::value* ms = data.if_contains("duration_ms");
    how += base::format_duration(
        base::milliseconds(ms != nullptr && ms->is_int64() ? ms->get_int64() : 0)
    );
    print_line(
        view, failed ? kRed : kDim, fmt::format("├─{} {}  ({})", failed ? "✗" : "✓", summary, how)
    );
    if (failed) {
        print_line(view, kRed, "│    " + one_line(text_at(*output, "content"), 200));
    }
}

}  // namespace ars::server
