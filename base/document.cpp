// YAML read through yaml-cpp's events, not its nodes: events keep the line of every key, show
// duplicate keys and let a hostile file (deep nesting, aliases of aliases) be refused before it
// costs memory.
#include "base/document.hpp"

#include "base/fd.hpp"
#include "base/fields.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <charconv>
#include <istream>
#include <optional>
#include <streambuf>
#include <utility>

namespace ars::base {

namespace {

namespace json = boost::json;

template <class Number>
std::optional<Number> whole_text_as(std::string_view text, int base) {
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
    const bool all = error == std::errc{} && end == text.data() + text.size() && !text.empty();
    return all ? std::optional(number) : std::nullopt;
}

bool looks_decimal(std::string_view text) {
    bool digits = false;
    bool point = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c >= '0' && c <= '9') {
            digits = true;
        } else if (c == '.' && !point) {
            point = true;
        } else if ((c == 'e' || c == 'E') && digits) {
            std::string_view exponent = text.substr(i + 1);
            if (exponent.starts_with('+') || exponent.starts_with('-')) {
                exponent.remove_prefix(1);
            }
            return !exponent.empty() &&
                   exponent.find_first_not_of("0123456789") == std::string_view::npos;
        } else {
            return false;
        }
    }
    return digits;
}

// A plain scalar by YAML's core schema: "yes" and "012:30" are text, 0x1F is a number.
json::value resolve_plain(std::string_view text) {
    if (text == "true" || text == "True" || text == "TRUE") {
        return true;
    }
    if (text == "false" || text == "False" || text == "FALSE") {
        return false;
    }
    if (text.starts_with("0x") || text.starts_with("0o")) {
        const auto number = whole_text_as<std::int64_t>(text.substr(2), text[1] == 'x' ? 16 : 8);
        return number && text[2] != '-' ? json::value(*number) : json::value(text);
    }
    const std::string_view unsigned_text =
        text.starts_with('+') || text.starts_with('-') ? text.substr(1) : text;
    if (!looks_decimal(unsigned_text)) {
        return json::value(text);
    }
    const std::string_view parsed = text.starts_with('+') ? unsigned_text : text;
    if (const auto number = whole_text_as<std::int64_t>(parsed, 10)) {
        return *number;
    }
    if (const auto number = whole_text_as<std::uint64_t>(parsed, 10)) {
        return *number;
    }
    double number = 0;
    const auto [end, error] = std::from_chars(parsed.data(), parsed.data() + parsed.size(), number);
    return error == std::errc{} && end == parsed.data() + parsed.size() ? json::value(number)
                                                                        : json::value(text);
}

class Builder : public YAML::EventHandler {
  public:
    explicit Builder(Document& out) : out_(out) {}
    [[nodiscard]] bool has_document() const { return has_document_; }

    void OnDocumentStart(const YAML::Mark& mark) override {
        if (has_document_) {
            refuse(mark, "a second document starts here; one file holds one document");
        }
        has_document_ = true;
        out_.lines[""] = mark.line + 1;
    }
    void OnDocumentEnd() override {}

    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        if (expects_key()) {
            refuse(mark, "a key must be a text");
        }
        place(mark, anchor, nullptr, 1);
    }

    void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        const auto found = anchors_.find(anchor);
        if (found == anchors_.end()) {
            refuse(mark, "an alias must not stand inside the value that it names");
        }
        if (expects_key()) {
            refuse(mark, "a key must be a plain text, not an alias");
        }
        const Anchored& named = found->second;
        check_depth(mark, stack_.size() + named.depth);
        count(mark, named.nodes);
        if (!stack_.empty()) {
            stack_.back().depth = std::max(stack_.back().depth, named.depth + 1);
        }
        place(mark, 0, named.value, 0);
    }

    void OnScalar(
        const YAML::Mark& mark,
        const std::string& tag,
        YAML::anchor_t anchor,
        const std::string& value
    ) override {
        if (expects_key()) {
            take_key(mark, value);
            return;
        }
        if (tag == "?") {
            place(mark, anchor, resolve_plain(value), cost_of(value));
        } else if (tag == "!" || tag == "tag:yaml.org,2002:str") {
            place(mark, anchor, json::value(value), cost_of(value));
        } else {
            refuse(mark, "the tag \"" + tag + "\" is not supported; write the value without it");
        }
    }

    void OnSequenceStart(
        const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, YAML::EmitterStyle::value
    ) override {
        open(mark, anchor, json::array());
    }
    void OnSequenceEnd() override { close(); }

    void OnMapStart(
        const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, YAML::EmitterStyle::value
    ) override {
        open(mark, anchor, json::object());
    }
    void OnMapEnd() override { close(); }

  private:
    struct Frame {
        json::value value;
        std::string pointer;
        std::optional<std::string> key;  // of the entry whose value comes next
        YAML::anchor_t anchor = 0;
        std::size_t first_node = 0;
        YAML::Mark mark;
        std::size_t depth = 1;  // levels, this one included
    };
    struct Anchored {
        json::value value;
        std::size_t nodes = 1;  // what an alias of it costs
        std::size_t depth = 0;
    };

    // A long text counts as many values, or aliases of one could fill the memory.
    [[nodiscard]] static std::size_t cost_of(const std::string& text) {
        return 1 + text.size() / limits::kKiB;
    }
    void count(const YAML::Mark& mark, std::size_t nodes) {
        nodes_ += nodes;
        if (nodes_ > limits::kConfigNodes) {
            refuse(mark, fmt::format("more than {} values", limits::kConfigNodes));
        }
    }
    static void check_depth(const YAML::Mark& mark, std::size_t levels) {
        if (levels > static_cast<std::size_t>(limits::kJsonDepth)) {
            refuse(mark, fmt::format("nested deeper than {} levels", limits::kJsonDepth));
        }
    }

    [[noreturn]] static void refuse(const YAML::Mark& mark, const std::string& why) {
        throw YAML::ParserException(mark, why);
    }

    [[nodiscard]] bool expects_key() const {
        return !stack_.empty() && stack_.back().value.is_object() && !stack_.back().key;
    }

    void take_key(const YAML::Mark& mark, const std::string& key) {
        Frame& frame = stack_.back();
        if (frame.value.get_object().contains(key)) {
            const int first = out_.lines[join_pointer(frame.pointer, key)];
            refuse(mark, fmt::format("the key \"{}\" stands twice, first on line {}", key, first));
        }
        frame.key = key;
        out_.lines[join_pointer(frame.pointer, key)] = mark.line + 1;
    }

    // The pointer of the value that comes next.
    [[nodiscard]] std::string next_pointer() const {
        if (stack_.empty()) {
            return {};
        }
        const Frame& frame = stack_.back();
        return frame.key ? join_pointer(frame.pointer, *frame.key)
                         : frame.pointer + "/" + std::to_string(frame.value.get_array().size());
    }

    void open(const YAML::Mark& mark, YAML::anchor_t anchor, json::value value) {
        if (expects_key()) {
            refuse(mark, "a key must be a text");
        }
        check_depth(mark, stack_.size() + 1);
        count(mark, 1);
        std::string pointer = next_pointer();
        out_.lines.try_emplace(pointer, mark.line + 1);
        stack_.push_back({std::move(value), std::move(pointer), {}, anchor, nodes_ - 1, mark});
    }

    void close() {
        Frame frame = std::move(stack_.back());
        stack_.pop_back();
        if (frame.anchor != 0) {
            anchors_[frame.anchor] = {frame.value, nodes_ - frame.first_node, frame.depth};
        }
        if (!stack_.empty()) {
            stack_.back().depth = std::max(stack_.back().depth, frame.depth + 1);
        }
        attach(std::move(frame.value));
    }

    void place(
        const YAML::Mark& mark, YAML::anchor_t anchor, json::value value, std::size_t nodes
    ) {
        count(mark, nodes);
        if (anchor != 0) {
            anchors_[anchor] = {value, nodes, 0};
        }
        out_.lines.try_emplace(next_pointer(), mark.line + 1);
        attach(std::move(value));
    }

    void attach(json::value value) {
        if (stack_.empty()) {
            out_.value = std::move(value);
        } else if (Frame& frame = stack_.back(); frame.key) {
            frame.value.get_object()[*frame.key] = std::move(value);
            frame.key.reset();
        } else {
            frame.value.get_array().push_back(std::move(value));
        }
    }

    Document& out_;
    std::vector<Frame> stack_;
    std::map<YAML::anchor_t, Anchored> anchors_;
    std::size_t nodes_ = 0;
    bool has_document_ = false;
};

// yaml-cpp wants a stream; this one reads the text in place.
class TextBuffer : public std::streambuf {
  public:
    explicit TextBuffer(std::string_view text) {
        char* start = const_cast<char*>(text.data());  // a get area is never written
        setg(start, start, start + text.size());
    }
};

std::unexpected<Error> bad_yaml(const std::string& file, int line, std::string_view why) {
    return fail(
        ErrorKind::invalid,
        "bad_yaml",
        fmt::format("{}:{}: not valid YAML: {}", file, std::max(line, 1), why)
    );
}

}  // namespace

std::string Document::describe(const Fault& fault) const {
    std::string out = file;
    if (const int line = line_of(fault.path); line > 0 && !file.empty()) {
        out += ":" + std::to_string(line);
    }
    return (out.empty() ? out : out + ": ") + base::describe(fault);
}

int Document::line_of(std::string_view path) const {
    for (;;) {
        if (const auto found = lines.find(std::string(path)); found != lines.end()) {
            return found->second;
        }
        if (path.empty()) {
            return 0;
        }
        path = path.substr(0, path.rfind('/') == std::string_view::npos ? 0 : path.rfind('/'));
    }
}

Result<Document> parse_yaml(std::string file, std::string_view text) {
    Document out{std::move(file), {}, {}};
    if (text.size() > limits::kConfigFileBytes) {
        return bad_yaml(out.file, 1, fmt::format("larger than {} bytes", limits::kConfigFileBytes));
    }
    if (!is_utf8(text)) {
        return bad_yaml(out.file, 1, "the file is not UTF-8 text");
    }
    TextBuffer buffer(text);
    std::istream stream(&buffer);
    try {
        Builder builder(out);
        YAML::Parser parser(stream);
        while (parser.HandleNextDocument(builder)) {
        }
        if (!builder.has_document()) {
            return bad_yaml(out.file, 1, "the file is empty");
        }
    } catch (const YAML::Exception& error) {
        return bad_yaml(out.file, error.mark.line + 1, error.msg);
    }
    return out;
}

Result<Document> load_yaml(const std::string& path) {
    auto text = read_file(path, limits::kConfigFileBytes);
    if (!text) {
        return std::unexpected(text.error());
    }
    return parse_yaml(path, *text);
}

}  // namespace ars::base
