#include "runtime/tools/environment.hpp"

#include "base/digest.hpp"
#include "fsmount/layout.hpp"

#include <algorithm>
#include <cerrno>

#include <sys/mman.h>
#include <unistd.h>

namespace ars::tools {

namespace {

// A call id or the like as one path part.
std::string file_name(const std::string& name) {
    constexpr std::size_t kNameBytes = 120;
    std::string out = name.substr(0, kNameBytes);
    std::ranges::replace_if(
        out, [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '_'; }, '_'
    );
    return (out.empty() ? base::random_uuid() : out) + ".txt";
}

// The wall clock when a scope was made: the upper part of its generation (sandbox/sandbox.cpp).
std::int64_t made_at(std::uint64_t generation) {
    return static_cast<std::int64_t>(generation >> 20U);
}

base::Result<void> copy_all(int from, int to) {
    std::string buffer(256 * base::limits::kKiB, '\0');
    off_t offset = 0;
    for (;;) {
        const ssize_t n = ::pread(from, buffer.data(), buffer.size(), offset);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return base::fail_errno("read_failed", "pread", errno);
        }
        if (n == 0) {
            return {};
        }
        const auto size = static_cast<std::size_t>(n);
        if (auto written = base::write_all(to, std::string_view(buffer).substr(0, size));
            !written) {
            return written;
        }
        offset += n;
    }
}

}  // namespace

Environment::Environment(
    std::shared_ptr<fsmount::Workspace> workspace,
    std::string workdir_path,
    sandbox::Sandbox& sandbox,
    sandbox::ScopeKey key,
    std::function<base::Result<sandbox::ScopeSpec>()> spec,
    base::Offload& offload,
    std::function<std::map<std::string, std::string>()> variables
)
    : workspace_(std::move(workspace)),
      cwd_(fsmount::guest_workdir(workdir_path)),
      sandbox_(sandbox),
      key_(std::move(key)),
      spec_(std::move(spec)),
      offload_(offload),
      variables_(std::move(variables)) {}

base::Task<base::Result<std::shared_ptr<sandbox::Scope>>> Environment::scope() {
    co_return co_await sandbox_.acquire(key_, spec_);
}

bool Environment::note_generation(std::uint64_t generation) {
    const std::int64_t made_ms = made_at(generation);
    const bool replaced = generation_ == 0 ? last_command_ms_ != 0 && last_command_ms_ < made_ms
                                           : generation_ != generation;
    generation_ = generation;
    return replaced;
}

void Environment::remember_command(std::int64_t ms) { last_command_ms_ = ms; }

base::Result<Environment::OutputFile> Environment::make_output_file(const std::string& name) const {
    const std::string path = cwd_ + "/outputs/large_tool_results/" + file_name(name);
    auto made = paths().create_file(path);
    if (made || made.error().code != "already_exists") {
        if (!made) {
            return std::unexpected(made.error());
        }
        return OutputFile{std::make_shared<base::Fd>(std::move(*made)), path};
    }
    const std::string other = cwd_ + "/outputs/large_tool_results/" +
                              file_name(name + "-" + base::random_uuid().substr(0, 8));
    made = paths().create_file(other);
    if (!made) {
        return std::unexpected(made.error());
    }
    return OutputFile{std::make_shared<base::Fd>(std::move(*made)), other};
}

base::Result<Environment::OutputFile> Environment::reserve_output_file(const std::string& name
) const {
    const std::string path = cwd_ + "/outputs/large_tool_results/" + file_name(name);
    auto made = paths().create_unnamed_file(path);
    if (!made) {
        // A file system without unnamed files: memory holds the text until it is published.
        made = base::Fd(::memfd_create("ars-output", MFD_CLOEXEC));
        if (!*made) {
            return base::fail_errno("output_file_failed", "memfd_create", errno);
        }
    }
    return OutputFile{std::make_shared<base::Fd>(std::move(*made)), path, false};
}

base::Result<void> Environment::publish_output_file(const OutputFile& file) const {
    if (file.named) {
        return {};
    }
    if (paths().publish(*file.fd, file.guest_path)) {
        return {};
    }
    auto made = paths().create_file(file.guest_path);
    if (!made) {
        return std::unexpected(made.error());
    }
    return copy_all(file.fd->get(), made->get());
}

}  // namespace ars::tools
