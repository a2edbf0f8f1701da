// fraganalyze replay TRACE: one replay under given settings, capacity and pool.
#include "analyzer/cli/output_file.h"
#include "analyzer/commands/analyze.h"
#include "analyzer/commands/arguments.h"
#include "analyzer/commands/registry.h"
#include "analyzer/pools/registry.h"
#include "analyzer/report/json.h"
#include "analyzer/report/text.h"

#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kMaxDiagnoses = 16;

struct ReplayOptions {
    CommonOptions common;
    std::string pool;
    std::string config;
    bool config_given = false;
    unsigned device = 0;
};

const DeviceAnalysis* find_device(const Analysis& analysis, unsigned index) {
    for (const DeviceAnalysis& device : analysis.devices) {
        if (device.device == index) {
            return &device;
        }
    }
    return nullptr;
}

Status replay_once(const ReplayOptions& options, std::optional<std::uint64_t> capacity_bytes) {
    const auto analysis =
        analyze(options.common.trace, {.torch_version = options.common.torch_version});
    if (!analysis) {
        return analysis.error();
    }
    const DeviceAnalysis* device = find_device(**analysis, options.device);
    if (device == nullptr) {
        return Error{ErrorCode::kUsage,
                     fmt::format("{}: nothing was allocated on device {}; see 'fraganalyze {}'",
                                 options.common.trace,
                                 options.device,
                                 options.common.trace)};
    }
    Candidate candidate{.name = options.config_given ? options.config : device->config,
                        .pool = options.pool.empty() ? device->pool : options.pool,
                        .config = options.config_given ? options.config : device->config,
                        .capacity_bytes = capacity_bytes.value_or(device->capacity_bytes),
                        .total_bytes = device->total_bytes};
    candidate.total_bytes =
        std::max(candidate.total_bytes, candidate.capacity_bytes + device->others_bytes);
    if (capacity_bytes) {
        candidate.total_bytes = candidate.capacity_bytes + device->others_bytes;
    }
    auto setup = candidate_setup(*device, candidate);
    if (!setup) {
        return setup.error();
    }
    ReplayHooks hooks;
    hooks.change_settings = !options.config_given;
    const ReplayResult result = replay(device->script, *setup->pool, nullptr, hooks);
    auto second = candidate_setup(*device, candidate);
    if (!second) {
        return second.error();
    }
    const std::vector<Diagnosis> diagnoses = diagnose(device->script,
                                                      result.troubles,
                                                      std::move(second).value(),
                                                      device->others_bytes,
                                                      kMaxDiagnoses);
    if (!options.common.json.empty()) {
        return write_output(options.common.json,
                            replay_json(**analysis, *device, candidate, result, diagnoses));
    }
    return write_output(
        "-",
        replay_text(**analysis, *device, candidate, result, diagnoses, options.common.terminal()));
}

}  // namespace

Status run_replay(int argc, char** argv) {
    CLI::App app(
        "Replays the recorded requests once, through a simulated pool.\n\n"
        "Examples\n"
        "  fraganalyze replay train.4711.ftrace --conf expandable_segments:True\n"
        "  fraganalyze replay train.4711.ftrace --pool pytorch --capacity 16GiB --json -\n",
        "fraganalyze replay");
    ReplayOptions options;
    options.common.add_trace(&app);
    app.add_option("--pool", options.pool, "simulated pool: " + pool_names())->type_name("NAME");
    auto* conf = app.add_option(
        "--conf", options.config, "settings as in PYTORCH_CUDA_ALLOC_CONF (default: as recorded)");
    conf->type_name("CONF");
    app.add_option("--device", options.device, "device ordinal")->capture_default_str();
    options.common.add_capacity(&app);
    options.common.add_torch_version(&app);
    options.common.add_json(&app);
    options.common.add_color(&app);
    const auto parsed = parse_arguments(&app, argc, argv);
    if (!parsed) {
        return parsed.error();
    }
    if (!*parsed) {
        return Ok{};
    }
    options.config_given = conf->count() != 0;
    const auto capacity = options.common.capacity_bytes();
    if (!capacity) {
        return capacity.error();
    }
    return replay_once(options, *capacity);
}

}  // namespace fragtrace::analyzer
