// Random trees of directories, files and links, each path judged by fsmount/paths and by a simple
// model of how a path is walked. The model knows names only; the real thing must agree on every
// verdict.
#include "fsmount/paths.hpp"
#include "tests/unit/fsmount/workspace_fixture.hpp"

#include <map>
#include <random>

namespace ars::fsmount {
namespace {

// Absolute guest paths and what stands there.
struct Node {
    char kind = 'd';   // d, f, l
    std::string text;  // content or link target
};
using Tree = std::map<std::string, Node>;

std::string join(const std::vector<std::string>& parts) {
    std::string out;
    for (const std::string& part : parts) {
        out += "/" + part;
    }
    return out.empty() ? "/" : out;
}

// "=content", "dir", or the code of the error.
std::string model_read(const Tree& tree, const std::string& path) {
    std::vector<std::string> pending = split_path(path);
    std::vector<std::string> here;
    for (int links = 0; !pending.empty();) {
        const std::string part = pending.front();
        pending.erase(pending.begin());
        if (part == "..") {
            if (!here.empty()) {
                here.pop_back();
            }
            continue;
        }
        here.push_back(part);
        const std::string now = join(here);
        if (here.size() <= 3) {
            if (now != "/home" && now != "/home/gem" && now != "/home/gem/user-data" &&
                now != "/home/gem/skills") {
                return "path_escape";
            }
            continue;
        }
        const auto node = tree.find(now);
        if (node == tree.end()) {
            return "not_found";
        }
        if (node->second.kind == 'l') {
            if (++links > 40) {
                return "too_many_links";
            }
            here.pop_back();
            const std::vector<std::string> target = split_path(node->second.text);
            if (node->second.text.starts_with('/')) {
                here.clear();
            }
            pending.insert(pending.begin(), target.begin(), target.end());
        } else if (node->second.kind == 'f' && !pending.empty()) {
            return "not_a_directory";
        } else if (node->second.kind == 'f') {
            return "=" + node->second.text;
        }
    }
    return here.size() < 3 ? "path_escape" : "not_regular_file";
}

class LinkModel : public WorkspaceTest {
  protected:
    std::string host(const std::string& guest) const {
        const std::string root = "/home/gem/user-data";
        return guest.starts_with(root) ? workspace_->user_data_source() + guest.substr(root.size())
                                       : workspace_->skills_source() + guest.substr(16);
    }

    std::string random_target() {
        static const char* const kTargets[] = {
            "/home/gem/user-data", "/home/gem/skills", "/etc", "/", "/home/gem", "/home", ".", ".."
        };
        std::string out;
        if (random_() % 2 == 0) {
            out = kTargets[random_() % std::size(kTargets)];
        }
        const std::size_t parts = random_() % 3 + (out.empty() ? 1 : 0);
        for (std::size_t i = 0; i < parts; ++i) {
            static const char* const kParts[] = {"a", "b", "c", "..", "skills", "user-data", "."};
            out += (out.empty() || out.ends_with('/') ? "" : "/");
            out += kParts[random_() % std::size(kParts)];
        }
        return out;
    }

    Tree random_tree() {
        Tree tree;
        std::vector<std::string> directories = {"/home/gem/user-data", "/home/gem/skills"};
        for (int i = 0; i < 25; ++i) {
            const std::string path = directories[random_() % directories.size()] + "/" +
                                     std::string(1, static_cast<char>('a' + random_() % 4));
            if (tree.contains(path)) {
                continue;
            }
            switch (random_() % 5) {
                case 0:
                case 1:
                    tree[path] = {'d', ""};
                    directories.push_back(path);
                    ::mkdir(host(path).c_str(), 0700);
                    break;
                case 2:
                    tree[path] = {'f', "content of " + path};
                    put(host(path), tree[path].text);
                    break;
                default:
                    tree[path] = {'l', random_target()};
                    EXPECT_EQ(::symlink(tree[path].text.c_str(), host(path).c_str()), 0);
            }
        }
        return tree;
    }

    std::string random_path() {
        std::string out = random_() % 4 == 0 ? "/home/gem/skills" : "/home/gem/user-data";
        const std::size_t parts = random_() % 4;
        for (std::size_t i = 0; i < parts; ++i) {
            out += std::string("/") + static_cast<char>('a' + random_() % 4);
        }
        return out;
    }

    void clear(const Tree& tree) {
        for (auto it = tree.rbegin(); it != tree.rend(); ++it) {
            ::remove(host(it->first).c_str());
        }
    }

    static void remove_below(const std::string& root) {
        const auto remove = [](const char* path, const struct stat*, int, FTW* at) {
            return at->level == 0 ? 0 : ::remove(path);
        };
        ::nftw(root.c_str(), remove, 32, FTW_DEPTH | FTW_PHYS);
    }

    std::mt19937 random_{20'240};
};

TEST_F(LinkModel, BothResolversAgreeWithTheModelOnRandomTrees) {
    const Paths kernel(workspace_, "/home/gem/user-data", Resolver::kernel);
    const Paths walk(workspace_, "/home/gem/user-data", Resolver::walk);
    const auto read = [](const Paths& paths, const std::string& path) {
        const auto file = paths.open_read(path);
        return file ? "=" + base::read_to_end(file->fd.get(), 4096).value_or("?")
                    : file.error().code;
    };
    std::map<std::string, int> verdicts;
    for (int round = 0; round < 60; ++round) {
        const Tree tree = random_tree();
        for (int i = 0; i < 60; ++i) {
            const std::string path = random_path();
            const std::string expected = model_read(tree, path);
            ASSERT_EQ(read(walk, path), expected) << "walk of " << path;
            ASSERT_EQ(read(kernel, path), expected) << "openat2 of " << path;
            ++verdicts[expected.starts_with('=') ? "read" : expected];
        }
        clear(tree);
    }
    for (const char* verdict :
         {"read",
          "path_escape",
          "not_found",
          "too_many_links",
          "not_a_directory",
          "not_regular_file"}) {
        EXPECT_GT(verdicts[verdict], 0) << verdict << " never happened";
    }
}

// What a write may touch: the file the model says a read would see, or a new one in user-data;
// never a skill.
TEST_F(LinkModel, RandomWritesNeverLeaveUserData) {
    const Paths paths(workspace_, "/home/gem/user-data");
    int written = 0;
    for (int round = 0; round < 60; ++round) {
        const Tree tree = random_tree();
        for (int i = 0; i < 20; ++i) {
            const std::string path = random_path();
            const std::string before = model_read(tree, path);
            const auto done = paths.write_file(path, "mine", {true, {}});
            if (before == "path_escape" || before == "too_many_links" ||
                before == "not_regular_file") {
                ASSERT_FALSE(done) << path << " was " << before;
            }
            written += done ? 1 : 0;
        }
        for (const auto& [path, node] : tree) {
            if (path.starts_with("/home/gem/skills") && node.kind == 'f') {
                ASSERT_EQ(get(host(path)), node.text) << "a write changed a skill";
            }
        }
        remove_below(user_data(""));
        remove_below(skills(""));
    }
    EXPECT_GT(written, 100);
}

}  // namespace
}  // namespace ars::fsmount
