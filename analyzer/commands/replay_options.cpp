#include "analyzer/commands/replay_options.h"

#include "analyzer/analysis/option_values.h"

#include <algorithm>
#include <fmt/format.h>

namespace fragtrace::analyzer {

void ReplayOptions::add(CLI::App* app) {
    app->add_option("--pool", pool, "simulated pool: " + pool_choices())
        ->type_name("NAME[:SETTINGS]");
    app->add_option("--conf",
                    config,
                    "settings of the pool; for pytorch as in PYTORCH_CUDA_ALLOC_CONF (default: as "
                    "recorded)")
        ->type_name("CONF");
    app->add_option("--device", device, "device ordinal")->capture_default_str();
}

void ReplayOptions::finish(const CLI::App& app) {
    config_given = app.count("--conf") != 0;
    const std::size_t colon = pool.find(':');
    if (colon != std::string::npos && !config_given) {
        config = pool.substr(colon + 1);
        config_given = true;
        pool.resize(colon);
    }
}

Result<const DeviceAnalysis*> ReplayOptions::find_device(const Analysis& analysis,
                                                         const std::string& trace) const {
    for (const DeviceAnalysis& candidate : analysis.devices) {
        if (candidate.device == device) {
            return &candidate;
        }
    }
    return Error{
        ErrorCode::kUsage,
        fmt::format(
            "{}: nothing was allocated on device {}; see 'fraganalyze {}'", trace, device, trace)};
}

Candidate ReplayOptions::candidate(const DeviceAnalysis& recorded,
                                   std::optional<std::uint64_t> capacity_bytes) const {
    const std::string& name = pool.empty() ? recorded.pool : pool;
    std::string settings = config;
    if (!config_given && name == recorded.pool) {
        settings = recorded.config;
    }
    Candidate chosen{.name = settings,
                     .pool = name,
                     .config = settings,
                     .capacity_bytes = capacity_bytes.value_or(recorded.capacity_bytes)};
    const std::uint64_t needed = chosen.capacity_bytes + recorded.others_bytes;
    chosen.total_bytes = capacity_bytes ? needed : std::max(recorded.total_bytes, needed);
    return chosen;
}

}  // namespace fragtrace::analyzer
