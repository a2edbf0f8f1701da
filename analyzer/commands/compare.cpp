// fraganalyze compare A B: what differs between two runs.
#include "analyzer/cli/output_file.h"
#include "analyzer/commands/arguments.h"
#include "analyzer/commands/registry.h"
#include "analyzer/compare/comparison.h"
#include "analyzer/report/compare_report.h"
#include "analyzer/snapshot/input.h"

#include <memory>

namespace fragtrace::analyzer {
namespace {

// One side; of JSON there is the profile alone.
struct Side {
    RunProfile profile;
    std::unique_ptr<Timeline> timeline;
    std::unique_ptr<Symbolizer> symbols;
};

Result<Side> read_side(const std::string& path) {
    Side side;
    if (looks_like_json(path)) {
        auto profile = read_profile_json(path);
        if (!profile) {
            return profile.error();
        }
        side.profile = std::move(profile).value();
        return side;
    }
    auto timeline = read_input(path);
    if (!timeline) {
        return timeline.error();
    }
    side.timeline = std::make_unique<Timeline>(std::move(timeline).value());
    side.symbols = std::make_unique<Symbolizer>(*side.timeline);
    side.profile = profile_of(*side.timeline, side.symbols.get());
    return side;
}

}  // namespace

Status run_compare(int argc, char** argv) {
    CLI::App app(
        "Holds run B against run A: peaks, what was wasted then and why, who holds more, phase by\n"
        "phase where both have phases, the first request that differs, and what was set "
        "otherwise.\n"
        "Each of the two is a trace, a snapshot of PyTorch, or the JSON of summarize or report.\n\n"
        "Examples\n"
        "  fraganalyze compare before.ftrace after.ftrace\n"
        "  fraganalyze compare good.json new.ftrace --json - | jq '.devices[0].holders_at_peak'\n",
        "fraganalyze compare");
    CommonOptions common;
    std::string path_a;
    std::string path_b;
    app.add_option("A", path_a, "the run before (.ftrace, .pickle or .json)")->required();
    app.add_option("B", path_b, "the run to hold against it")->required();
    common.add_json(&app);
    common.add_color(&app);
    const auto parsed = parse_arguments(&app, argc, argv);
    if (!parsed) {
        return parsed.error();
    }
    if (!*parsed) {
        return Ok{};
    }
    auto a = read_side(path_a);
    if (!a) {
        return a.error();
    }
    auto b = read_side(path_b);
    if (!b) {
        return b.error();
    }
    Comparison comparison = compare(std::move(a->profile), std::move(b->profile));
    if (a->timeline && b->timeline) {
        comparison.requests =
            first_requests(*a->timeline, a->symbols.get(), *b->timeline, b->symbols.get());
    }
    return common.json.empty() ? write_output("-", compare_text(comparison, common.terminal()))
                               : write_output(common.json, compare_json(comparison));
}

}  // namespace fragtrace::analyzer
