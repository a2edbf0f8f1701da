#include "analyzer/commands/replay_options.h"

#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/analysis/option_values.h"

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
    choose_pool(std::string(pool));
}

}  // namespace fragtrace::analyzer
