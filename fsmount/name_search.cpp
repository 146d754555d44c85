#include "fsmount/name_search.hpp"

#include "fsmount/directory_stream.hpp"
#include "fsmount/guest_path.hpp"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

namespace ars::fsmount {

namespace {

// One that waits to be read: a name costs less than a descriptor.
struct Waiting {
    std::string relative;
    std::size_t depth = 0;
};

class Search {
  public:
    Search(const SearchBounds& bounds, const SearchFilter& filter)
        : bounds_(bounds), filter_(filter) {}

    NameSearch run(const base::Fd& start) {
        waiting_.push_back({});
        for (std::size_t read = 0; !waiting_.empty() && !full_; ++read) {
            if (read == bounds_.directories || entries_ == bounds_.entries) {
                out_.complete = false;
                break;
            }
            const Waiting next = std::move(waiting_.front());
            waiting_.pop_front();
            read_directory(open(start, next.relative), next);
        }
        return std::move(out_);
    }

  private:
    // Part by part: one of them may have become a link since its name was read.
    static base::Result<DirectoryStream> open(const base::Fd& start, const std::string& relative) {
        if (relative.empty()) {
            return DirectoryStream::read(start.get(), ".");
        }
        base::Fd at;
        for (const std::string& part : split_path(relative)) {
            base::Fd below(::openat(
                at ? at.get() : start.get(),
                part.c_str(),
                O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
            ));
            if (!below) {
                return std::unexpected(file_error(relative, errno));
            }
            at = std::move(below);
        }
        return DirectoryStream::take(std::move(at), relative);
    }

    void read_directory(base::Result<DirectoryStream> stream, const Waiting& place) {
        if (!stream) {
            out_.complete &= stream.error().code == "not_found";  // it may just have gone
            return;
        }
        std::vector<FoundName> names;
        for (std::size_t width = 0; auto item = stream->next(); ++width) {
            if (width == bounds_.width || entries_ == bounds_.entries) {
                out_.complete = false;
                break;
            }
            ++entries_;
            struct stat status{};
            const std::string name(item->name);
            if (::fstatat(stream->descriptor(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
                names.push_back(
                    {place.relative.empty() ? name : place.relative + "/" + name, info_of(status)}
                );
            }
        }
        out_.complete &= stream->error() == 0;
        std::ranges::sort(names, {}, &FoundName::relative);
        for (FoundName& name : names) {
            if (!visit(name, place.depth)) {
                return;
            }
        }
    }

    // False when there are enough results.
    bool visit(FoundName& name, std::size_t depth) {
        if (name.info.kind == FileKind::directory) {
            if (filter_.passes_over(name.relative)) {
                return true;
            }
            if (depth < bounds_.depth) {
                waiting_.push_back({name.relative, depth + 1});
            } else {
                out_.complete = false;
            }
        }
        if (filter_.matches(name.relative)) {
            full_ = out_.found.size() == bounds_.results;
            if (full_) {
                out_.complete = false;
                return false;
            }
            out_.found.push_back(std::move(name));
        }
        return true;
    }

    const SearchBounds& bounds_;
    const SearchFilter& filter_;
    std::deque<Waiting> waiting_;
    NameSearch out_;
    std::size_t entries_ = 0;
    bool full_ = false;
};

}  // namespace

NameSearch search_names(
    const base::Fd& start, const SearchBounds& bounds, const SearchFilter& filter
) {
    return Search(bounds, filter).run(start);
}

}  // namespace ars::fsmount
