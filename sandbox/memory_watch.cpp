#include "sandbox/memory_watch.hpp"

#include "sandbox/process_tree.hpp"

#include <algorithm>
#include <vector>

#include <time.h>

namespace ars::sandbox {

namespace {

constexpr std::chrono::milliseconds kShortestPause{10};
constexpr std::chrono::milliseconds kLongestPause{100};
constexpr int kIdleShare = 10;   // looks may take a tenth of a processor
constexpr int kFastGrowth = 16;  // a sixteenth of the limit between two looks is fast

// Not the wall clock: a storm of processes makes a look long without making it costly.
std::chrono::nanoseconds processor_time() {
    timespec used{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

struct Trees {
    std::vector<std::vector<TreeProcess>> of_slot;
    std::vector<std::uint64_t> kib;
    std::uint64_t total = 0;
};

void add_up(Trees& trees) {
    trees.total = 0;
    trees.kib.clear();
    for (const auto& tree : trees.of_slot) {
        std::uint64_t sum = 0;
        for (const TreeProcess& process : tree) {
            sum += process.memory_kib;
        }
        trees.kib.push_back(sum);
        trees.total += sum;
    }
}

Trees read_trees(const std::list<KeeperSlot>& slots, int proc, Freezer& freezer) {
    const ProcessTree all(proc, freezer);
    Trees trees;
    for (const KeeperSlot& slot : slots) {
        trees.of_slot.push_back(all.below(slot.keeper));
    }
    add_up(trees);
    return trees;
}

// Memory that several processes share counts once. One that can't be read keeps its first figure.
void take_shares(Trees& trees, int proc, Freezer& freezer) {
    for (auto& tree : trees.of_slot) {
        for (TreeProcess& process : tree) {
            freezer.check();
            if (process.headless) {
                continue;
            }
            if (const auto share = proportional_memory_kib(proc, process.proc_id)) {
                process.memory_kib = std::min(process.memory_kib, *share);
            }
        }
    }
    add_up(trees);
}

}  // namespace

void MemoryWatch::command_started() {
    pause_ = kShortestPause;
    next_ = std::min(next_, Clock::now() + pause_);
}

int MemoryWatch::wait_ms(const std::list<KeeperSlot>& slots) const {
    if (limit_kib_ == 0 || slots.empty()) {
        return -1;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_ - Clock::now());
    return static_cast<int>(std::max<std::chrono::milliseconds::rep>(left.count(), 0));
}

std::optional<MemoryWatch::Excess> MemoryWatch::look(
    std::list<KeeperSlot>& slots, int proc, Freezer& freezer
) {
    const auto began = processor_time();
    Trees trees = read_trees(slots, proc, freezer);
    const bool grows = trees.total > last_kib_ + limit_kib_ / kFastGrowth;
    last_kib_ = trees.total;
    if (trees.total > limit_kib_) {
        take_shares(trees, proc, freezer);
    }
    pause_ = grows ? kShortestPause : std::min(2 * pause_, kLongestPause);
    next_ =
        Clock::now() + std::max<Clock::duration>(pause_, kIdleShare * (processor_time() - began));
    if (trees.total <= limit_kib_) {
        return std::nullopt;
    }
    const auto most = std::max_element(trees.kib.begin(), trees.kib.end());
    const auto slot = std::next(slots.begin(), most - trees.kib.begin());
    return Excess{
        &*slot, static_cast<std::uint32_t>(*most), static_cast<std::uint32_t>(trees.total)
    };
}

}  // namespace ars::sandbox
