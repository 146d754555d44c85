#include "fsmount/tree_walk.hpp"

#include "fsmount/directory_stream.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>

namespace ars::fsmount {

namespace {

FileKind kind_of_item(int directory, const DirectoryStream::Item& item) {
    switch (item.type) {
        case DT_REG:
            return FileKind::file;
        case DT_DIR:
            return FileKind::directory;
        case DT_LNK:
            return FileKind::symlink;
        case DT_UNKNOWN: {
            struct stat status{};
            const std::string name(item.name);
            if (::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
                return kind_of(status.st_mode);
            }
            return FileKind::other;
        }
        default:
            return FileKind::other;
    }
}

class TreeWalk {
  public:
    TreeWalk(const WalkLimits& limits, const std::function<WalkStep(const WalkEntry&)>& visit)
        : limits_(limits), visit_(visit) {}

    WalkReport run(const base::Fd& start) {
        enter(DirectoryStream::read(start.get(), "."), "", 0);
        WalkReport report;
        report.unreadable = unreadable_;
        if (full_) {
            report.stopped_by = "more than " + std::to_string(limits_.entries) + " entries";
        } else if (late_) {
            report.stopped_by = "the time limit";
        } else if (deep_) {
            report.stopped_by = "directories nested deeper than " + std::to_string(limits_.depth);
        }
        report.complete = report.stopped_by.empty();
        return report;
    }

  private:
    // False when the whole walk is over.
    bool enter(base::Result<DirectoryStream> stream, const std::string& prefix, std::size_t depth) {
        if (!stream) {
            ++unreadable_;  // the rest of the tree is still worth a visit
            return true;
        }
        const int directory = stream->descriptor();
        std::vector<std::pair<std::string, FileKind>> items;
        while (auto item = stream->next()) {
            if (++seen_ > limits_.entries) {
                full_ = true;
                break;
            }
            items.emplace_back(item->name, kind_of_item(directory, *item));
        }
        unreadable_ += stream->error() != 0 ? 1 : 0;
        std::ranges::sort(items);
        for (auto& [name, kind] : items) {
            late_ = late_ || limits_.deadline.passed();
            if (late_) {
                return false;
            }
            WalkEntry entry{directory, std::move(name), {}, kind};
            entry.relative = prefix.empty() ? entry.name : prefix + "/" + entry.name;
            const WalkStep step = visit_(entry);
            if (step == WalkStep::stop) {
                return false;
            }
            if (kind == FileKind::directory && step == WalkStep::go_on && !descend(entry, depth)) {
                return false;
            }
        }
        return true;
    }

    bool descend(const WalkEntry& entry, std::size_t depth) {
        if (full_) {
            return true;  // what was read is still shown, nothing more is
        }
        if (depth >= limits_.depth) {
            deep_ = true;
            return true;
        }
        base::Fd child(::openat(
            entry.directory, entry.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
        ));
        if (!child) {
            unreadable_ += errno == EACCES ? 1 : 0;
            return true;
        }
        return enter(
            DirectoryStream::take(std::move(child), entry.relative), entry.relative, depth + 1
        );
    }

    const WalkLimits& limits_;
    const std::function<WalkStep(const WalkEntry&)>& visit_;
    std::size_t seen_ = 0;
    std::size_t unreadable_ = 0;
    bool full_ = false;
    bool late_ = false;
    bool deep_ = false;
};

}  // namespace

WalkReport walk_tree(
    const base::Fd& start,
    const WalkLimits& limits,
    const std::function<WalkStep(const WalkEntry&)>& visit
) {
    return TreeWalk(limits, visit).run(start);
}

}  // namespace ars::fsmount
