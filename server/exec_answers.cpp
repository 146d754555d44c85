#include "server/exec_answers.hpp"

#include "base/text.hpp"

#include <boost/json/array.hpp>

#include <limits>
#include <utility>

namespace ars::server {

namespace {

namespace json = boost::json;
using ProcessPtr = std::shared_ptr<sandbox::Process>;
using ScopePtr = std::shared_ptr<sandbox::Scope>;

constexpr auto kInputWait = std::chrono::seconds(10);
constexpr auto kWholeOutput = std::numeric_limits<std::uint64_t>::max();

json::object refusal(std::string_view code, std::string_view detail) {
    return {{"status", code}, {"detail", detail}};
}

json::object not_found(const std::string& id) {
    return refusal("not_found", "there is no command \"" + id + "\" in this sandbox");
}

json::object state_of(const sandbox::Process& process) {
    json::object out = process.outcome().to_json();
    if (process.running()) {
        out["status"] = "running";
    }
    return out;
}

base::Task<json::object> run(ScopePtr scope, BatchRun line) {
    if (!line.wait) {
        co_return (co_await scope->run(std::move(line.command))).to_json();
    }
    auto started = co_await scope->start(std::move(line.command));
    if (!started) {
        co_return failed_outcome(started.error().message).to_json();
    }
    const ProcessPtr process = *started;
    co_await process->wait(base::Deadline::after(*line.wait));
    json::object out = state_of(*process);
    if (process->running()) {
        out["next_offset"] = process->read(kWholeOutput, 0).total;
    }
    co_return out;
}

base::Task<json::object> poll(ProcessPtr process, BatchPoll line) {
    co_await process->wait(base::Deadline::after(line.wait));
    json::object out = state_of(*process);
    const bool raw = out.contains("stdout_base64");
    if (process->running()) {
        for (const char* key : {"stdout", "stderr", "stdout_base64", "stderr_base64", "lossy"}) {
            out.erase(key);
        }
    }
    const auto page = process->read(line.offset, base::limits::kToolResultBytes);
    if (raw) {
        out["output_base64"] = base::to_base64(page.bytes);
    } else {
        out["output"] = base::to_utf8(page.bytes).text;
    }
    out["next_offset"] = page.next_offset;
    out["total"] = page.total;
    if (page.dropped != 0) {
        out["dropped"] = page.dropped;
    }
    co_return out;
}

base::Task<json::object> input(ProcessPtr process, BatchInput line) {
    const auto deadline = base::Deadline::after(kInputWait);
    if (auto written = co_await process->write(std::move(line.data), deadline); !written) {
        co_return refusal(written.error().code, written.error().message);
    }
    if (line.close) {
        process->close_input();
    }
    co_return json::object{{"status", "ok"}, {"id", process->id()}};
}

base::Task<json::object> resize(ProcessPtr process, BatchResize line) {
    if (auto resized = process->resize(line.size); !resized) {
        co_return refusal(resized.error().code, resized.error().message);
    }
    co_return json::object{{"status", "ok"}, {"id", process->id()}};
}

base::Task<json::object> kill(ProcessPtr process, BatchKill) {
    co_await process->kill();
    co_return state_of(*process);
}

base::Task<json::object> list(ScopePtr scope) {
    json::array commands;
    for (const ProcessPtr& process : scope->processes()) {
        const sandbox::Outcome outcome = process->outcome();
        commands.push_back(json::object{
            {"id", process->id()},
            {"command", process->command()},
            {"status", process->running() ? "running" : sandbox::to_string(outcome.status)},
            {"output_bytes", process->read(kWholeOutput, 0).total},
            {"duration_ms", outcome.duration.count()}
        });
    }
    json::array background;
    for (const auto& left : co_await scope->background()) {
        background.push_back(json::object{{"pid", left.pid}, {"command", left.command}});
    }
    co_return json::object{
        {"status", "ok"}, {"commands", std::move(commands)}, {"background", std::move(background)}
    };
}

struct Answer {
    ScopePtr scope;

    // For the lines about one command.
    template <class Line>
    base::Task<json::object> about(Line line, base::Task<json::object> (*act)(ProcessPtr, Line))
        const {
        const ProcessPtr process = scope->find(line.id);
        if (!process) {
            co_return not_found(line.id);
        }
        co_return co_await act(process, std::move(line));
    }
    base::Task<json::object> operator()(BatchRun line) const { return run(scope, std::move(line)); }
    base::Task<json::object> operator()(BatchPoll line) const {
        return about(std::move(line), &poll);
    }
    base::Task<json::object> operator()(BatchInput line) const {
        return about(std::move(line), &input);
    }
    base::Task<json::object> operator()(BatchResize line) const {
        return about(std::move(line), &resize);
    }
    base::Task<json::object> operator()(BatchKill line) const {
        return about(std::move(line), &kill);
    }
    base::Task<json::object> operator()(BatchList) const { return list(scope); }
};

}  // namespace

sandbox::Outcome failed_outcome(std::string detail) {
    sandbox::Outcome outcome;
    outcome.detail = std::move(detail);
    return outcome;
}

base::Task<json::object> answer(ScopePtr scope, BatchLine line) {
    const Answer one{std::move(scope)};
    co_return co_await std::visit(one, std::move(line));
}

}  // namespace ars::server
