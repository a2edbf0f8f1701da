// fraganalyze replay TRACE: replays a trace once with given settings, capacity and pool.
#include "analyzer/analysis/analyze.h"
#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/analysis/one_replay.h"
#include "analyzer/analysis/recorded_replay.h"
#include "analyzer/analysis/verdict/verdict.h"
#include "analyzer/analysis/verdict/verdict_text.h"
#include "analyzer/commands/arguments.h"
#include "analyzer/commands/registry.h"
#include "analyzer/commands/replay_options.h"
#include "analyzer/report/json/json.h"
#include "analyzer/report/text/text.h"
#include "analyzer/support/output_file.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>
#include <memory>

namespace fragtrace::analyzer {
namespace {

// Whether the pool could serve one more request on the default stream, and if not, why.
std::string answer_request(const DeviceAnalysis& device,
                           const Pool& pool,
                           std::uint64_t requested_bytes,
                           std::uint64_t others_bytes) {
    const auto& streams = device.script.streams;
    const auto stream = std::find(streams.begin(), streams.end(), std::uint64_t{0});
    const Request request = {
        .block = kNoEvent - 1,
        .requested_bytes = requested_bytes,
        .stream = static_cast<StreamId>(stream == streams.end() ? 0 : stream - streams.begin())};
    const std::unique_ptr<Pool> after = pool.clone();
    const AllocateResult served = after->allocate(request);
    std::string text =
        fmt::format("A request of {} at the end: ", format_bytes(request.requested_bytes));
    switch (served.outcome) {
        case Outcome::kHit:
            return text + "served from a free block.\n";
        case Outcome::kGrow:
            return text + fmt::format("served with {} of new memory from the driver.\n",
                                      format_bytes(after->statistics().reserved.current -
                                                   pool.statistics().reserved.current));
        default:
            break;
    }
    const bool retry = served.outcome == Outcome::kRetryOk;
    const std::unique_ptr<Pool> state = retry ? pool.clone() : after->clone();
    const Verdict verdict = judge(*state, request, others_bytes);
    return text + fmt::format("{}\n  {}\n",
                              verdict_sentence(verdict, served.outcome),
                              verdict_explanation(verdict));
}

Status replay_trace(const CommonOptions& common,
                    const ReplayOptions& options,
                    std::optional<std::uint64_t> capacity_bytes,
                    std::optional<std::uint64_t> requested_bytes) {
    const auto assumed = common.assumptions();
    if (!assumed) {
        return assumed.error();
    }
    const auto most_events = common.most_events();
    if (!most_events) {
        return most_events.error();
    }
    const auto analysis = analyze(common.trace,
                                  {.torch_version = common.torch_version,
                                   .assumptions = *assumed,
                                   .most_events = *most_events});
    if (!analysis) {
        return analysis.error();
    }
    const auto found = options.find_device(**analysis);
    if (!found) {
        return found.error();
    }
    const DeviceAnalysis* device = *found;
    Candidate candidate = options.candidate(*device, capacity_bytes);
    if (requested_bytes && !capacity_bytes && !segments_known(device->recorded)) {
        return Error{ErrorCode::kUsage,
                     fmt::format("{}: --request needs --capacity: this input does not say how much "
                                 "memory was reserved",
                                 common.trace)};
    }
    if (requested_bytes && !capacity_bytes && !device->capacity_known) {
        // Without a known capacity, assume that the driver has no free memory.
        candidate.capacity_bytes = device->recorded.peak_reserved;
        candidate.total_bytes = candidate.capacity_bytes + device->others_bytes;
    }
    const auto done = replay_once(*device, candidate);
    if (!done) {
        return done.error();
    }
    if (!common.json.empty()) {
        return write_output(common.json,
                            replay_json(**analysis, *device, done->row, done->diagnoses));
    }
    std::string text =
        replay_text(**analysis, *device, done->row, done->diagnoses, common.terminal());
    if (requested_bytes) {
        text += answer_request(*device, *done->setup.pool, *requested_bytes, others_to_go(*device));
    }
    return write_text(text);
}

}  // namespace

Status run_replay(int argc, char** argv) {
    CLI::App app(
        "Replays the recorded requests once in a simulated pool.\n\n"
        "Examples\n"
        "  fraganalyze replay train.myhost.4711.ftrace --conf expandable_segments:True\n"
        "  fraganalyze replay train.myhost.4711.ftrace --pool best-fit --capacity 16GiB --json -\n"
        "  fraganalyze replay snapshot.pickle --request 2GiB\n",
        "fraganalyze replay");
    CommonOptions common;
    ReplayOptions options;
    common.add_trace(&app);
    options.add(&app);
    std::string asked;
    app.add_option("--request",
                   asked,
                   "request one more block at the end, such as 2GiB, and explain the result")
        ->type_name("SIZE");
    common.add_capacity(&app);
    common.add_torch_version(&app);
    common.add_assumptions(&app);
    common.add_events(&app);
    common.add_json(&app);
    common.add_color(&app);
    if (const Status parsed = parse_arguments(&app, argc, argv); !parsed) {
        return parsed;
    }
    options.finish(app);
    const auto capacity = common.capacity_bytes();
    if (!capacity) {
        return capacity.error();
    }
    std::optional<std::uint64_t> requested;
    if (!asked.empty()) {
        const auto bytes = parse_card_bytes(asked);
        if (!bytes) {
            return Error{bytes.error().code, "--request: " + bytes.error().message};
        }
        if (*bytes == 0) {
            return Error{
                ErrorCode::kUsage,
                fmt::format("--request: '{}' is not a size; give one such as 2GiB", asked)};
        }
        if (!common.json.empty()) {
            return Error{ErrorCode::kUsage, "--request prints text only; remove --json"};
        }
        requested = *bytes;
    }
    return replay_trace(common, options, *capacity, requested);
}

}  // namespace fragtrace::analyzer
