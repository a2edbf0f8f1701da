// fraganalyze replay TRACE: one replay under given settings, capacity and pool.
#include "analyzer/cli/output_file.h"
#include "analyzer/commands/analyze.h"
#include "analyzer/commands/arguments.h"
#include "analyzer/commands/registry.h"
#include "analyzer/commands/replay_options.h"
#include "analyzer/report/json.h"
#include "analyzer/report/text.h"

#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kMaxDiagnoses = 16;

Status replay_once(const CommonOptions& common,
                   const ReplayOptions& options,
                   std::optional<std::uint64_t> capacity_bytes) {
    const auto assumed = common.assumptions();
    if (!assumed) {
        return assumed.error();
    }
    const auto analysis =
        analyze(common.trace, {.torch_version = common.torch_version, .assumptions = *assumed});
    if (!analysis) {
        return analysis.error();
    }
    const auto found = options.find_device(**analysis, common.trace);
    if (!found) {
        return found.error();
    }
    const DeviceAnalysis* device = *found;
    const Candidate candidate = options.candidate(*device, capacity_bytes);
    auto setup = candidate_setup(*device, candidate);
    if (!setup) {
        return setup.error();
    }
    WhatIfRow row;
    row.candidate = candidate;
    row.result = replay(device->script, *setup->pool);
    if (const auto lower = lower_end(candidate)) {
        Candidate at_lower_end = candidate;
        at_lower_end.config = *lower;
        auto lower_setup = candidate_setup(*device, at_lower_end);
        if (!lower_setup) {
            return lower_setup.error();
        }
        row.lower = replay(device->script, *lower_setup->pool);
    }
    classify_row(sweep_context(*device), &row);
    auto second = candidate_setup(*device, candidate);
    if (!second) {
        return second.error();
    }
    const std::vector<Diagnosis> diagnoses = diagnose(device->script,
                                                      row.result.troubles,
                                                      std::move(second).value(),
                                                      device->others_bytes,
                                                      kMaxDiagnoses);
    if (!common.json.empty()) {
        return write_output(common.json, replay_json(**analysis, *device, row, diagnoses));
    }
    return write_output("-", replay_text(**analysis, *device, row, diagnoses, common.terminal()));
}

}  // namespace

Status run_replay(int argc, char** argv) {
    CLI::App app(
        "Replays the recorded requests once, through a simulated pool.\n\n"
        "Examples\n"
        "  fraganalyze replay train.4711.ftrace --conf expandable_segments:True\n"
        "  fraganalyze replay train.4711.ftrace --pool best-fit --capacity 16GiB --json -\n",
        "fraganalyze replay");
    CommonOptions common;
    ReplayOptions options;
    common.add_trace(&app);
    options.add(&app);
    common.add_capacity(&app);
    common.add_torch_version(&app);
    common.add_assumptions(&app);
    common.add_json(&app);
    common.add_color(&app);
    const auto parsed = parse_arguments(&app, argc, argv);
    if (!parsed) {
        return parsed.error();
    }
    if (!*parsed) {
        return Ok{};
    }
    options.finish(app);
    const auto capacity = common.capacity_bytes();
    if (!capacity) {
        return capacity.error();
    }
    return replay_once(common, options, *capacity);
}

}  // namespace fragtrace::analyzer
