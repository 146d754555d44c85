#include "fsmount/resolution.hpp"

#include "fsmount/layout.hpp"

#include <climits>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ars::fsmount {

using base::Error;
using base::Fd;
using base::Result;

namespace {

constexpr int kMaxLinks = 40;           // as the kernel
constexpr std::size_t kMaxDepth = 512;  // of the walk: it holds one descriptor a level

Fd open_beneath(int root, const GuestPath& path, int flags) {
    open_how how{};
    how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    const std::string name = path.rest + (path.rest.empty() ? "." : path.directory ? "/" : "");
    return Fd(static_cast<int>(::syscall(SYS_openat2, root, name.c_str(), &how, sizeof how)));
}

// Whether the walk could say more than the kernel did: links that leave the root may enter the
// other one, and sandboxes answer unknown calls with ENOSYS or EPERM.
bool kernel_undecided(int error) {
    return error == EXDEV || error == ELOOP || error == ENOSYS || error == EPERM ||
           error == EAGAIN || error == E2BIG || error == EINVAL;
}

// A position in the guest's tree. "/", "/home" and "/home/gem" are only names; below them every
// level is held open, so that ".." means the directory we came from, whatever was renamed
// meanwhile.
class Walk {
  public:
    Walk(const Workspace& workspace, const GuestPath& path)
        : workspace_(workspace), shown_(path.shown()), within_(split_path(path.within)) {
        prepend(path.text() + (path.directory ? "/" : ""));
    }

    // Goes on to the end. With LastLink::keep a link as the last part is the result.
    Result<void> run(LastLink last) {
        while (!pending_.empty()) {
            const std::string part = std::move(pending_.front());
            pending_.pop_front();
            if (auto stepped = step(part, last); !stepped) {
                return stepped;
            }
        }
        return {};
    }

    Result<Located> located() {
        if (!inside()) {
            return std::unexpected(escape());
        }
        if (missing_) {
            return std::unexpected(file_error(shown_, ENOENT));
        }
        Located out{root_, std::move(levels_.back().fd), {}};
        if (::fstat(out.object.get(), &out.status) != 0) {
            return std::unexpected(failure(errno));
        }
        return out;
    }

    Result<Place> place() {
        if (!inside()) {
            return std::unexpected(escape());
        }
        Place out;
        out.root = root_;
        out.exists = !missing_;
        if (!missing_ && ::fstat(levels_.back().fd.get(), &out.status) != 0) {
            return std::unexpected(failure(errno));
        }
        if (levels_.size() > kVirtual + 1 + within_.size()) {
            out.name = std::move(levels_.back().name);
            levels_.pop_back();
            out.parent = std::move(levels_.back().fd);
        }
        return out;
    }

  private:
    struct Level {
        std::string name;
        Fd fd;
    };
    static constexpr std::size_t kVirtual = 2;  // levels "home" and "gem"

    // The levels are where we really are: links on the way left none.
    [[nodiscard]] bool inside() const {
        if (within_.empty()) {
            return levels_.size() > kVirtual;
        }
        const auto same = [](const std::string& part, const Level& level) {
            return part == level.name;
        };
        return root_ == GuestRoot::user_data && levels_.size() > kVirtual + within_.size() &&
               std::equal(within_.begin(), within_.end(), levels_.begin() + kVirtual + 1, same);
    }

    [[nodiscard]] Error escape() const {
        const std::string why = link_.empty() ? "" : "a link leads to " + quote_path(link_);
        return within_.empty() ? path_escape(shown_, why) : outside_directory(shown_, why);
    }

    // Of what a link leads to outside, not even that it is missing is told.
    [[nodiscard]] Error failure(int error) const {
        const bool told = within_.empty() || link_.empty() || inside();
        return told ? file_error(shown_, error) : escape();
    }

    // A "." stays at the end of what can only be a directory: with a part still to come, a file is
    // refused and a link followed, as the kernel does.
    void prepend(std::string_view path) {
        std::vector<std::string> parts = split_path(path);
        if (names_directory(path)) {
            parts.emplace_back(".");
        }
        pending_.insert(pending_.begin(), parts.begin(), parts.end());
    }

    Result<void> step(const std::string& part, LastLink last) {
        if (part == ".") {
            return {};
        }
        if (part == "..") {
            if (!levels_.empty()) {
                levels_.pop_back();
            }
            return {};
        }
        if (levels_.size() <= kVirtual) {
            return enter_named(part);
        }
        return enter(part, last);
    }

    // Above the roots there are only these names.
    Result<void> enter_named(const std::string& part) {
        constexpr std::array<std::string_view, kVirtual> kNames = {"home", "gem"};
        if (levels_.size() < kVirtual) {
            if (part != kNames[levels_.size()]) {
                return std::unexpected(escape());
            }
            levels_.push_back({part, Fd()});
            return {};
        }
        if (part == "user-data") {
            root_ = GuestRoot::user_data;
        } else if (part == "skills") {
            root_ = GuestRoot::skills;
        } else {
            return std::unexpected(escape());
        }
        auto raw = root_descriptor(workspace_, root_);
        if (!raw) {
            return std::unexpected(raw.error());
        }
        auto copy = base::duplicate(*raw);
        if (!copy) {
            return std::unexpected(copy.error());
        }
        levels_.push_back({part, std::move(*copy)});
        return {};
    }

    Result<void> enter(const std::string& part, LastLink last) {
        if (levels_.size() >= kMaxDepth) {
            return std::unexpected(file_error(shown_, ENAMETOOLONG));
        }
        const int here = levels_.back().fd.get();
        Fd child(::openat(here, part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
        if (!child) {
            if (errno == ENOENT && pending_.empty()) {
                missing_ = true;
                levels_.push_back({part, Fd()});
                return {};
            }
            return std::unexpected(failure(errno));
        }
        struct stat status{};
        if (::fstat(child.get(), &status) != 0) {
            return std::unexpected(failure(errno));
        }
        const bool is_last = pending_.empty();
        if (S_ISLNK(status.st_mode) && !(is_last && last == LastLink::keep)) {
            return follow(child);
        }
        if (!is_last && !S_ISDIR(status.st_mode)) {
            return std::unexpected(failure(ENOTDIR));
        }
        levels_.push_back({part, std::move(child)});
        return {};
    }

    Result<void> follow(const Fd& link) {
        if (++links_ > kMaxLinks) {
            return std::unexpected(file_error(shown_, ELOOP));
        }
        std::array<char, PATH_MAX> target{};
        const ssize_t size = ::readlinkat(link.get(), "", target.data(), target.size());
        if (size < 0) {
            return std::unexpected(failure(errno));
        }
        link_.assign(target.data(), static_cast<std::size_t>(size));
        if (link_.starts_with('/')) {
            levels_.clear();
        }
        prepend(link_);
        return {};
    }

    const Workspace& workspace_;
    std::string shown_;
    std::vector<std::string> within_;
    std::string link_;  // the last link followed, for the error
    std::deque<std::string> pending_;
    std::vector<Level> levels_;
    GuestRoot root_ = GuestRoot::user_data;
    int links_ = 0;
    bool missing_ = false;
};

}  // namespace

Result<int> root_descriptor(const Workspace& workspace, GuestRoot root) {
    const int raw = root == GuestRoot::user_data ? workspace.user_data() : workspace.skills();
    if (raw < 0) {
        return std::unexpected(file_error(std::string(root_path(root)), ENOENT));
    }
    return raw;
}

Result<Located> locate(
    const Workspace& workspace, const GuestPath& path, LastLink last, Resolver resolver
) {
    const auto root = root_descriptor(workspace, path.root);
    if (!root) {
        return std::unexpected(root.error());
    }
    if (resolver == Resolver::kernel && path.within.empty()) {
        const int flags = O_PATH | (last == LastLink::keep ? O_NOFOLLOW : 0);
        Located out{path.root, open_beneath(*root, path, flags), {}};
        if (out.object) {
            if (::fstat(out.object.get(), &out.status) != 0) {
                return std::unexpected(file_error(path.shown(), errno));
            }
            return out;
        }
        if (!kernel_undecided(errno)) {
            return std::unexpected(file_error(path.shown(), errno));
        }
    }
    Walk walk(workspace, path);
    if (auto done = walk.run(last); !done) {
        return std::unexpected(done.error());
    }
    return walk.located();
}

Result<Place> locate_place(const Workspace& workspace, const GuestPath& path, LastLink last) {
    Walk walk(workspace, path);
    if (auto done = walk.run(last); !done) {
        return std::unexpected(done.error());
    }
    return walk.place();
}

Result<Fd> make_directories(int root, const std::string& rest, const std::string& shown) {
    auto here = base::duplicate(root);
    std::string name = shown;
    const std::vector<std::string> parts = split_path(rest);
    for (const std::string& part : parts) {
        if (!here) {
            return here;
        }
        name += "/" + part;
        // All but the last are mostly there, and looking is cheaper than trying to make them.
        if (&part != &parts.back()) {
            Fd known(
                ::openat(here->get(), part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
            );
            if (known) {
                *here = std::move(known);
                continue;
            }
        }
        const bool made = ::mkdirat(here->get(), part.c_str(), 0700) == 0;
        if (!made && errno != EEXIST) {
            return std::unexpected(file_error(name, errno));
        }
        // Not O_PATH: a directory just made gets its mode whatever the umask was.
        const int flags = (made ? O_RDONLY : O_PATH) | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
        Fd next(::openat(here->get(), part.c_str(), flags));
        if (!next) {
            const int error = errno;
            struct stat status{};
            if (::fstatat(here->get(), part.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                S_ISLNK(status.st_mode)) {
                return base::fail(
                    base::ErrorKind::forbidden,
                    "link_in_path",
                    name +
                        " is a symbolic link; directories are made only below real directories: "
                        "write the path it leads to"
                );
            }
            return std::unexpected(file_error(name, error));
        }
        if (made && ::fchmod(next.get(), 0700) != 0) {
            return std::unexpected(file_error(name, errno));
        }
        *here = std::move(next);
    }
    return here;
}

Result<Fd> make_parents(const Workspace& workspace, const GuestPath& path) {
    const auto root = root_descriptor(workspace, path.root);
    if (!root) {
        return std::unexpected(root.error());
    }
    const std::size_t slash = path.rest.rfind('/');
    const std::string parents = slash == std::string::npos ? "" : path.rest.substr(0, slash);
    return make_directories(*root, parents, std::string(root_path(path.root)));
}

}  // namespace ars::fsmount
