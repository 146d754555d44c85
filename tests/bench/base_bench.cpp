// What every step of a run pays to base: text made safe, output cut, coroutines fanned out and
// joined.
#include "base/task_group.hpp"
#include "base/text.hpp"

#include <benchmark/benchmark.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include <string>

namespace ars::base {
namespace {

// Log-like text with a wide character every line.
std::string sample(std::size_t bytes) {
    std::string text;
    text.reserve(bytes + 64);
    while (text.size() < bytes) {
        text += "2024-03-01;north;widget;12;199.90 \xE2\x82\xAC;ok\n";
    }
    return text;
}

void clean_text(benchmark::State& state) {
    const std::string text = sample(static_cast<std::size_t>(state.range(0)));
    for (auto _ : state) {
        benchmark::DoNotOptimize(to_utf8(text));
    }
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK(clean_text)->Arg(4 << 10)->Arg(256 << 10);

void cut_text(benchmark::State& state) {
    const std::string text = sample(4 << 20);
    for (auto _ : state) {
        benchmark::DoNotOptimize(head_and_tail(text, 256 << 10, "/home/gem/user-data/x.log"));
    }
}
BENCHMARK(cut_text);

Task<void> nothing() { co_return; }

Task<void> fan_out(asio::any_io_executor executor, std::int64_t tasks) {
    TaskGroup group(executor);
    for (std::int64_t i = 0; i < tasks; ++i) {
        group.spawn(nothing());
    }
    co_await group.join();
}

void spawn_and_join(benchmark::State& state) {
    asio::io_context io(1);
    for (auto _ : state) {
        io.restart();
        asio::co_spawn(io, fan_out(io.get_executor(), state.range(0)), asio::detached);
        io.run();
    }
    state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(spawn_and_join)->Arg(1)->Arg(64);

}  // namespace
}  // namespace ars::base

BENCHMARK_MAIN();
