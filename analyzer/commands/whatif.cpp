// fraganalyze whatif TRACE: replays the same requests with many settings and capacities and ranks
// the results.
#include "analyzer/analysis/analyze.h"
#include "analyzer/commands/arguments.h"
#include "analyzer/commands/registry.h"
#include "analyzer/report/json/json.h"
#include "analyzer/report/text/text.h"
#include "analyzer/support/output_file.h"

namespace fragtrace::analyzer {

Status run_whatif(int argc, char** argv) {
    CLI::App app(
        "Replays the recorded requests with many settings, other pools and capacities; best "
        "first.\n\n"
        "Examples\n"
        "  fraganalyze whatif train.myhost.4711.ftrace\n"
        "  fraganalyze whatif train.myhost.4711.ftrace --capacity 24GiB\n"
        "  fraganalyze whatif train.myhost.4711.ftrace --empty-cache-every 5\n",
        "fraganalyze whatif");
    CommonOptions common;
    common.add_trace(&app);
    common.add_json(&app);
    common.add_capacity(&app);
    common.add_torch_version(&app);
    common.add_assumptions(&app);
    common.add_events(&app);
    common.add_color(&app);
    std::uint64_t every_steps = 0;
    app.add_option("--empty-cache-every",
                   every_steps,
                   "also replay empty_cache() every N steps of the program (default: 10)")
        ->check(CLI::Range(2, 1000000))
        ->type_name("N");
    bool without_scan = false;
    app.add_flag(
        "--no-scan", without_scan, "skip the search for the smallest card, which takes longest");
    if (const Status parsed = parse_arguments(&app, argc, argv); !parsed) {
        return parsed;
    }
    auto options = common.analyze_options();
    if (!options) {
        return options.error();
    }
    options->settings = true;
    options->pools = true;
    options->capacities = true;
    options->remedies = true;
    options->scans = !without_scan;
    options->every_steps = every_steps;
    const auto analysis = analyze(common.trace, *options);
    if (!analysis) {
        return analysis.error();
    }
    if (!common.json.empty()) {
        return write_output(common.json, whatif_json(**analysis));
    }
    return write_text(whatif_text(**analysis, common.terminal()));
}

}  // namespace fragtrace::analyzer
