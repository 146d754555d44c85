// All scopes of the appliance: one per key, made when first needed, replaced when dead, released
// when idle.
#include "base/clock.hpp"
#include "sandbox/live_scope.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <csignal>
#include <map>
#include <utility>
#include <vector>

namespace ars::sandbox {

namespace {

namespace asio = boost::asio;
namespace limits = base::limits;

constexpr auto kShortestSweep = std::chrono::milliseconds(10);
constexpr auto kLongestSweep = std::chrono::seconds(15);

class ScopeTable final : public Sandbox, public std::enable_shared_from_this<ScopeTable> {
  public:
    ScopeTable(
        asio::any_io_executor executor,
        SandboxOptions options,
        const base::Log& log,
        Launcher launcher,
        std::shared_ptr<ChildIo> io
    )
        : executor_(executor),
          options_(options),
          log_(log),
          io_(std::move(io)),
          launcher_(std::move(launcher)),
          sweep_timer_(executor) {}

    base::Task<base::Result<std::shared_ptr<Scope>>> acquire(
        ScopeKey key, std::function<base::Result<ScopeSpec>()> spec
    ) override;
    base::Task<void> release(ScopeKey key) override;
    base::Task<void> close() override;
    [[nodiscard]] std::size_t size() const override { return entries_.size(); }
    [[nodiscard]] const SandboxCounters& counters() const override { return *counters_; }
    [[nodiscard]] std::string backend() const override { return io_->name(); }

    void sweep_later();

  private:
    struct Entry {
        explicit Entry(const asio::any_io_executor& executor) : changed(executor) {}
        std::shared_ptr<LiveScope> scope;  // absent while it is being made
        base::Notifier changed;
    };
    using EntryPtr = std::shared_ptr<Entry>;

    base::Task<base::Result<std::shared_ptr<LiveScope>>> make(
        std::function<base::Result<ScopeSpec>()> spec
    );
    void forget(const ScopeKey& key, const EntryPtr& entry);
    void sweep();

    asio::any_io_executor executor_;
    SandboxOptions options_;
    const base::Log& log_;
    std::shared_ptr<ChildIo> io_;
    std::shared_ptr<SandboxCounters> counters_ = std::make_shared<SandboxCounters>();
    Launcher launcher_;
    std::map<ScopeKey, EntryPtr> entries_;
    asio::steady_timer sweep_timer_;
    bool sweeping_ = false;
    bool closed_ = false;
    // Of the newest scope: the wall clock in ms when it was made, and 20 bits that keep it rising,
    // also across restarts, so that what belonged to an old scope is never taken for a new one's.
    std::uint64_t generation_ = 0;
};

base::Task<base::Result<std::shared_ptr<LiveScope>>> ScopeTable::make(
    std::function<base::Result<ScopeSpec>()> spec
) {
    auto wanted = spec();
    if (!wanted) {
        co_return std::unexpected(wanted.error());
    }
    if (auto sound = check_policy(wanted->policy); !sound) {
        co_return std::unexpected(sound.error());
    }
    auto rules = EgressRules::parse(wanted->policy.allowed_hosts);
    if (!rules) {
        co_return std::unexpected(rules.error());
    }
    auto launched =
        co_await launcher_.launch(std::move(*wanted), base::Deadline::after(limits::kScopeSetUp));
    if (!launched) {
        log_.error("scope_setup_failed", {{"message", launched.error().message}});
        co_return std::unexpected(launched.error());
    }
    const auto now = static_cast<std::uint64_t>(base::now_ms()) << 20U;
    generation_ = std::max(generation_ + 1, now);
    base::Fd proxy_listener = std::move(launched->proxy_listener);
    auto scope = std::make_shared<LiveScope>(
        executor_, io_, counters_, log_, std::move(*launched), generation_
    );
    scope->listen();
    if (proxy_listener) {
        scope->serve_proxy(std::make_unique<EgressProxy>(
            executor_,
            std::move(proxy_listener),
            std::move(*rules),
            options_.name_servers,
            generation_,
            log_,
            std::shared_ptr<EgressCounts>(counters_, &counters_->egress)
        ));
    }
    co_return scope;
}

// Only the entry that we mean: another one may have taken its place meanwhile.
void ScopeTable::forget(const ScopeKey& key, const EntryPtr& entry) {
    const auto found = entries_.find(key);
    if (found != entries_.end() && found->second == entry) {
        entries_.erase(found);
    }
    entry->changed.notify_all();
}

base::Task<base::Result<std::shared_ptr<Scope>>> ScopeTable::acquire(
    ScopeKey key, std::function<base::Result<ScopeSpec>()> spec
) {
    for (;;) {
        const auto found = entries_.find(key);
        if (found == entries_.end()) {
            break;
        }
        const EntryPtr entry = found->second;
        if (!entry->scope) {
            // Somebody else makes it; when that fails we try ourselves.
            if (!co_await entry->changed.wait(base::Deadline::after(2 * limits::kScopeSetUp))) {
                co_return base::fail(
                    base::ErrorKind::timeout,
                    "scope_setup_failed",
                    "another call has been making this sandbox for too long"
                );
            }
            continue;
        }
        if (entry->scope->alive()) {
            entry->scope->touch();
            co_return entry->scope;
        }
        forget(key, entry);
        co_await entry->scope->close();
    }
    if (closed_) {
        co_return base::fail(
            base::ErrorKind::unavailable, "sandbox_closed", "the server is stopping"
        );
    }
    if (entries_.size() >= options_.max_scopes) {
        co_return base::fail(
            base::ErrorKind::exhausted,
            "scopes_full",
            "all " + std::to_string(options_.max_scopes) + " sandboxes are in use; try again later"
        );
    }
    const auto entry = std::make_shared<Entry>(executor_);
    entries_.emplace(key, entry);
    struct Unmade {
        ScopeTable& table;
        const ScopeKey& key;
        const EntryPtr& entry;
        Unmade(ScopeTable& owner, const ScopeKey& name, const EntryPtr& made)
            : table(owner), key(name), entry(made) {}
        Unmade(const Unmade&) = delete;
        Unmade& operator=(const Unmade&) = delete;
        ~Unmade() {
            if (!entry->scope) {
                table.forget(key, entry);  // failed or cancelled
            }
        }
    } unmade(*this, key, entry);
    auto made = co_await make(std::move(spec));
    if (!made) {
        co_return std::unexpected(made.error());
    }
    if (closed_) {
        co_await (*made)->close();
        co_return base::fail(
            base::ErrorKind::unavailable, "sandbox_closed", "the server is stopping"
        );
    }
    if (options_.max_scopes == 1) {
        // Should another one follow its death, a new template makes it. The end of this one takes a
        // processor, so the first command goes first.
        asio::post(executor_, [weak = weak_from_this()] {
            if (const auto table = weak.lock()) {
                table->launcher_.retire();
            }
        });
    }
    entry->scope = *made;
    entry->changed.notify_all();
    sweep_later();
    co_return *made;
}

base::Task<void> ScopeTable::release(ScopeKey key) {
    const auto found = entries_.find(key);
    if (found == entries_.end() || !found->second->scope) {
        co_return;
    }
    const EntryPtr entry = found->second;
    forget(key, entry);
    co_await entry->scope->close();
}

base::Task<void> ScopeTable::close() {
    closed_ = true;
    sweep_timer_.cancel();
    launcher_.retire();
    co_await base::shield_from_cancellation();
    while (!entries_.empty()) {
        const auto [key, entry] = *entries_.begin();
        if (!entry->scope) {
            // Being made: acquire() sees closed_ and ends it. Its own deadline bounds this.
            co_await entry->changed.wait(base::Deadline::after(2 * limits::kScopeSetUp));
            forget(key, entry);
            continue;
        }
        forget(key, entry);
        co_await entry->scope->close();
    }
}

void ScopeTable::sweep_later() {
    if (sweeping_ || closed_ || entries_.empty()) {
        return;
    }
    sweeping_ = true;
    const auto pause =
        std::clamp<base::milliseconds>(options_.idle_release / 4, kShortestSweep, kLongestSweep);
    sweep_timer_.expires_after(pause);
    // Weak: a timer that fires late must not keep the table, or find it gone.
    sweep_timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
        if (const auto table = weak.lock()) {
            table->sweeping_ = false;
            if (!error) {
                table->sweep();
                table->sweep_later();
            }
        }
    });
}

base::Task<void> close_idle(std::shared_ptr<LiveScope> scope) { co_await scope->close(); }

void ScopeTable::sweep() {
    const auto now = std::chrono::steady_clock::now();
    std::vector<std::pair<ScopeKey, EntryPtr>> idle;
    for (const auto& [key, entry] : entries_) {
        if (entry->scope && entry->scope->running() == 0 &&
            entry->scope->last_used() + options_.idle_release <= now) {
            idle.emplace_back(key, entry);
        }
    }
    for (const auto& [key, entry] : idle) {
        log_.info("scope_released", {{"generation", entry->scope->generation()}});
        forget(key, entry);
        asio::co_spawn(executor_, close_idle(entry->scope), asio::detached);
    }
}

// The table is shared with its timer's handler; the owner sees one object.
class SandboxHandle final : public Sandbox {
  public:
    explicit SandboxHandle(std::shared_ptr<ScopeTable> table) : table_(std::move(table)) {}
    base::Task<base::Result<std::shared_ptr<Scope>>> acquire(
        ScopeKey key, std::function<base::Result<ScopeSpec>()> spec
    ) override {
        return table_->acquire(std::move(key), std::move(spec));
    }
    base::Task<void> release(ScopeKey key) override { return table_->release(std::move(key)); }
    base::Task<void> close() override { return table_->close(); }
    [[nodiscard]] std::size_t size() const override { return table_->size(); }
    [[nodiscard]] const SandboxCounters& counters() const override { return table_->counters(); }
    [[nodiscard]] std::string backend() const override { return table_->backend(); }

  private:
    std::shared_ptr<ScopeTable> table_;
};

}  // namespace

base::Result<std::unique_ptr<Sandbox>> make_sandbox(
    asio::any_io_executor executor, SandboxOptions options, const base::Log& log
) {
    // Writing to a command that has ended is an ordinary event, and children must stay ours to
    // reap.
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGCHLD, SIG_DFL);
    // First of all: the template sets itself up while this process goes on.
    Launcher launcher(options.cgroups);
    if (options.expected_tier == Tier::namespaces) {
        launcher.prepare(options.expected != Network::host);
    }
    auto io = make_child_io(executor, options.backend);
    if (!io) {
        return std::unexpected(io.error());
    }
    return std::make_unique<SandboxHandle>(std::make_shared<ScopeTable>(
        std::move(executor), options, log, std::move(launcher), std::move(*io)
    ));
}

}  // namespace ars::sandbox
