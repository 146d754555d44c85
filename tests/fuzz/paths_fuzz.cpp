// Guest paths over any small tree of directories, files and links. The input is a list of lines:
// "D u/a" makes a directory below user-data ("s/a": below skills), "F u/a" a file, "L u/a TARGET" a
// link; any other line is a path to judge. openat2 and the walk must agree, and what is read or
// written must lie inside.
#include "fsmount/guest_path.hpp"
#include "fsmount/paths.hpp"
#include "tests/fuzz/scratch.hpp"

#include <fstream>
#include <iterator>
#include <vector>

namespace {

using namespace ars;
using namespace ars::fsmount;

constexpr std::string_view kCwd = "/home/gem/user-data";
constexpr std::size_t kLines = 40;

class Tree {
  public:
    Tree() : outside_(scratch_.path() + "/outside") { std::ofstream(outside_) << "outside"; }
    ~Tree() = default;
    Tree(const Tree&) = delete;
    Tree& operator=(const Tree&) = delete;

    [[nodiscard]] const Workspace& workspace() const { return *scratch_.workspace(); }
    [[nodiscard]] std::shared_ptr<Workspace> shared() const { return scratch_.workspace(); }

    void clear() const {
        tests::Scratch::empty(workspace().user_data_source());
        tests::Scratch::empty(workspace().skills_source());
    }

    // True when the line was about the tree.
    bool make(std::string_view line) const {
        if (line.size() < 3 || line[1] != ' ') {
            return false;
        }
        const std::string_view rest = line.substr(2);
        const std::string_view name = rest.substr(0, rest.find(' '));
        const std::string host = host_path(name);
        if (host.empty()) {
            return false;
        }
        switch (line[0]) {
            case 'D':
                ::mkdir(host.c_str(), 0700);
                return true;
            case 'F': {
                struct stat status{};  // not through a link: the tree is made, not judged, here
                if (::lstat(host.c_str(), &status) != 0) {
                    std::ofstream(host) << "inside";
                }
                return true;
            }
            case 'L': {
                const std::string target(rest.substr(std::min(name.size() + 1, rest.size())));
                [[maybe_unused]] const int made = ::symlink(target.c_str(), host.c_str());
                return true;
            }
            default:
                return false;
        }
    }

    void check_nothing_left() const {
        std::ifstream in(outside_);
        require(std::string(std::istreambuf_iterator<char>(in), {}) == "outside");
        int entries = 0;
        for (const char* const name : {"users", "skills", "outside"}) {
            entries += ::access((scratch_.path() + "/" + name).c_str(), F_OK) == 0 ? 1 : 0;
        }
        require(entries == 3);
    }

  private:
    // "u/a/b" below user-data, "s/a" below skills: plain names under real directories, so that the
    // harness itself makes nothing outside.
    [[nodiscard]] std::string host_path(std::string_view name) const {
        if (name.size() < 3 || name.size() > 12 || (name[0] != 'u' && name[0] != 's') ||
            name.substr(1).find_first_not_of("abcde/") != std::string_view::npos) {
            return {};
        }
        const std::string root =
            name[0] == 's' ? workspace().skills_source() : workspace().user_data_source();
        std::string path = root;
        for (const std::string& part : split_path(name.substr(1))) {
            struct stat status{};
            if (path != root && (::lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))) {
                return {};
            }
            path += "/" + part;
        }
        return path == root ? std::string() : path;
    }

    tests::Scratch scratch_;
    std::string outside_;
};

void check_text(std::string_view path) {
    const std::string quoted = quote_path(path);
    require(unquote_path(quoted).value_or("") == path);
    const auto parsed = parse_guest_path(path, kCwd);
    if (!parsed) {
        require(parsed.error().code == "invalid_path" || parsed.error().code == "path_escape");
        return;
    }
    const std::string text = parsed->text();
    require(text.starts_with(root_path(parsed->root)));
    require(text.size() < 4096 && text.find('\0') == std::string::npos);
    require((text + "/").find("/../") == std::string::npos);
    require((text + "/").find("/./") == std::string::npos);
    require(text.find("//") == std::string::npos && !text.ends_with('/'));
    const auto again = parse_guest_path(parsed->shown(), kCwd);
    require(again && again->rest == parsed->rest && again->root == parsed->root);
}

std::string verdict(const Paths& paths, std::string_view path) {
    const auto file = paths.open_read(path);
    if (!file) {
        return file.error().code;
    }
    const auto content = base::read_to_end(file->fd.get(), 64).value_or("?");
    require(content == "inside" || content == "mine");
    return "=" + content;
}

void judge(const Tree& tree, std::string_view path) {
    check_text(path);
    const Paths kernel(tree.shared(), std::string(kCwd), Resolver::kernel);
    const Paths walk(tree.shared(), std::string(kCwd), Resolver::walk);
    const std::string seen = verdict(kernel, path);
    require(seen == verdict(walk, path));
    const auto listed = kernel.list_directory(path, "", 4);
    require(listed.has_value() == walk.list_directory(path, "", 4).has_value());
    const auto written = kernel.write_file(path, "mine", {true, {}});
    require(!written || verdict(walk, path) == "=mine");
    require(written || verdict(walk, path) != "=mine" || seen == "=mine");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const Tree tree;
    tree.clear();
    std::string_view text(reinterpret_cast<const char*>(data), size);
    for (std::size_t i = 0; i < kLines && !text.empty(); ++i) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        if (!tree.make(line)) {
            judge(tree, line);
        }
    }
    tree.check_nothing_left();
    return 0;
}
