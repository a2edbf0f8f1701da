// fraganalyze compare A B: shows the differences between two runs.
#include "analyzer/analysis/analyze.h"
#include "analyzer/analysis/compare/batch.h"
#include "analyzer/analysis/compare/comparison.h"
#include "analyzer/analysis/compare/profile_json.h"
#include "analyzer/analysis/read_run.h"
#include "analyzer/analysis/replay_setups.h"
#include "analyzer/commands/arguments.h"
#include "analyzer/commands/compare_page.h"
#include "analyzer/commands/registry.h"
#include "analyzer/report/compare_report.h"
#include "analyzer/snapshot/input.h"
#include "analyzer/support/output_file.h"
#include "analyzer/support/terminal.h"
#include "analyzer/support/units.h"

#include <fmt/format.h>
#include <memory>
#include <optional>

namespace fragtrace::analyzer {
namespace {

// One of the two runs. A run that was read from JSON or in part has only the profile.
struct Side {
    RunProfile profile;
    bool from_json = false;
    std::unique_ptr<Timeline> timeline;
    std::unique_ptr<Symbolizer> symbols;
};

Result<Side> read_side(const std::string& path, std::uint64_t most_events) {
    Side side;
    if (looks_like_json(path) && import_name(path).empty()) {
        auto profile = read_profile_json(path);
        if (!profile) {
            return profile.error();
        }
        side.profile = std::move(profile).value();
        side.from_json = true;
        return side;
    }
    auto read = read_run(path, most_events);
    if (!read) {
        return read.error();
    }
    side.timeline = std::make_unique<Timeline>(std::move(read->timeline));
    side.symbols = std::make_unique<Symbolizer>(*side.timeline);
    side.profile =
        profile_of(*side.timeline, side.symbols.get(), read->whole ? &*read->whole : nullptr);
    if (side.profile.is_part()) {  // its requests are not compared
        side.symbols.reset();
        side.timeline.reset();
    }
    return side;
}

const DeviceAnalysis* pool_of(const Analysis& analysis, DeviceId id) {
    for (const DeviceAnalysis& device : analysis.devices) {
        if (device.device == id && device.script.source == ScriptSource::kBlocks) {
            return &device;
        }
    }
    return nullptr;
}

// Creates the pool of a run on cards of other sizes.
MakePool pools_like(const DeviceAnalysis& device) {
    return [&device](std::uint64_t capacity_bytes) -> Result<std::unique_ptr<Pool>> {
        const std::uint64_t capacity = capacity_bytes == 0 ? kUnlimitedBytes : capacity_bytes;
        auto setup = candidate_setup(device,
                                     {.name = {},
                                      .pool = device.pool,
                                      .config = device.config,
                                      .capacity_bytes = capacity,
                                      .total_bytes = capacity + device.others_bytes});
        if (!setup) {
            return setup.error();
        }
        return std::move(setup->pool);
    };
}

// --batch matches all requests of one run with those of the other, so both are read as a whole.
Status can_predict(const std::string& path_a,
                   const std::string& path_b,
                   const std::vector<std::uint64_t>& batches,
                   std::uint64_t most_events) {
    if (batches.size() != 2) {
        return Error{ErrorCode::kUsage, "--batch: give two, as in --batch 8,16"};
    }
    for (const std::string& path : {path_a, path_b}) {
        if (is_longer_than(most_events, path)) {
            return Error{ErrorCode::kUsage,
                         fmt::format("{}: has more than {} events, and --batch needs all requests. "
                                     "Record fewer steps, or add --events all",
                                     path,
                                     format_count(most_events))};
        }
    }
    return Ok{};
}

// `batches` are the batch sizes of the two traces, `asked` those to predict.
Result<std::vector<BatchPrediction>> predict(const std::string& path_a,
                                             const std::string& path_b,
                                             const std::vector<std::uint64_t>& batches,
                                             const std::vector<std::uint64_t>& asked,
                                             std::optional<std::uint64_t> capacity_bytes) {
    AnalyzeOptions options;
    options.capacity_bytes = capacity_bytes;
    options.max_diagnoses = 0;
    options.most_events = kAllEvents;  // can_predict() has checked how many there are
    const auto a = analyze(path_a, options);
    if (!a) {
        return a.error();
    }
    const auto b = analyze(path_b, options);
    if (!b) {
        return b.error();
    }
    std::vector<BatchPrediction> predictions;
    for (const DeviceAnalysis& of_a : (*a)->devices) {
        const DeviceAnalysis* of_b = pool_of(**b, of_a.device);
        if (of_b == nullptr || pool_of(**a, of_a.device) == nullptr) {
            continue;
        }
        auto prediction = predict_batches({batches[0],
                                           &(*a)->timeline,
                                           (*a)->symbols.get(),
                                           &of_a.script,
                                           of_a.recorded.peak_reserved},
                                          {batches[1],
                                           &(*b)->timeline,
                                           (*b)->symbols.get(),
                                           &of_b->script,
                                           of_b->recorded.peak_reserved},
                                          asked,
                                          of_b->capacity_bytes,
                                          pools_like(*of_b));
        if (!prediction) {
            return prediction.error();
        }
        predictions.push_back(std::move(prediction).value());
    }
    if (predictions.empty()) {
        return Error{
            ErrorCode::kInput,
            fmt::format("{}, {}: --batch: no device has a caching pool in both", path_a, path_b)};
    }
    return predictions;
}

struct Arguments {
    CommonOptions common;
    std::string path_a;
    std::string path_b;
    std::string html;
    bool without_whatif = false;
    std::vector<std::uint64_t> batches;
    std::vector<std::uint64_t> asked;

    void add(CLI::App* app) {
        app->add_option("A", path_a, "the run before (.ftrace, .pickle or .json)")->required();
        app->add_option("B", path_b, "the run to compare with it")->required();
        app->add_option("--html",
                        html,
                        "write a page with the comparison and both runs to FILE ('-' is standard "
                        "output, instead); not of JSON")
            ->type_name("FILE")
            ->check(output_fault);
        app->add_flag(
            "--no-whatif", without_whatif, "of the page: skip the what-if replays of both runs");
        auto* batch = app->add_option(
            "--batch", batches, "the runs differ in the batch: its sizes in A and B");
        batch->delimiter(',')->type_name("N,N");
        app->add_option("--predict", asked, "batches to estimate the peak of")
            ->delimiter(',')
            ->type_name("N,...")
            ->needs(batch);
        common.add_capacity(app);
        common.add_events(app);
        common.add_json(app);
        common.add_color(app);
    }

    // Errors that the arguments alone show.
    [[nodiscard]] Status check() const {
        if (html == "-" && common.json == "-") {
            return Error{ErrorCode::kUsage, "--html and --json cannot both go to standard output"};
        }
        if (without_whatif && html.empty()) {
            return Error{ErrorCode::kUsage, "--no-whatif is for the page: add --html FILE"};
        }
        return Ok{};
    }
};

struct Compared {
    Comparison comparison;
    bool from_json = false;  // of one run at least
};

// The events of both runs are forgotten on return.
Result<Compared> compare_files(const std::string& path_a,
                               const std::string& path_b,
                               std::uint64_t most_events) {
    auto a = read_side(path_a, most_events);
    if (!a) {
        return a.error();
    }
    auto b = read_side(path_b, most_events);
    if (!b) {
        return b.error();
    }
    Compared compared{compare(std::move(a->profile), std::move(b->profile)),
                      a->from_json || b->from_json};
    if (a->timeline && b->timeline) {
        compared.comparison.requests =
            first_requests(*a->timeline, a->symbols.get(), *b->timeline, b->symbols.get());
    }
    return compared;
}

Status write_page(const Arguments& arguments, const Comparison& comparison) {
    auto options = arguments.common.analyze_options();
    if (!options) {
        return options.error();
    }
    if (!arguments.without_whatif) {
        add_report_replays(&*options);
    }
    return write_compare_page(
        {arguments.path_a, arguments.path_b, arguments.html, std::move(options).value()},
        comparison);
}

}  // namespace

Status run_compare(int argc, char** argv) {
    CLI::App app(
        "Compares run B with run A: peaks, waste at the peak, memory by line, phases (if "
        "both runs have them), the first different request, and different settings. Each run "
        "is a trace, a PyTorch snapshot, or the JSON of summarize or report.\n\n"
        "Examples\n"
        "  fraganalyze compare before.ftrace after.ftrace\n"
        "  fraganalyze compare before.ftrace after.ftrace --html compare.html\n"
        "  fraganalyze compare good.json new.ftrace --json - | jq '.devices[0].holders_at_peak'\n"
        "  fraganalyze compare batch8.ftrace batch16.ftrace --batch 8,16 --predict 12,24\n",
        "fraganalyze compare");
    Arguments arguments;
    arguments.add(&app);
    const auto& [common, path_a, path_b, html, without_whatif, batches, asked] = arguments;
    if (const Status parsed = parse_arguments(&app, argc, argv); !parsed) {
        return parsed;
    }
    if (Status fine = arguments.check(); !fine) {
        return fine;
    }
    const auto capacity = common.capacity_bytes();
    if (!capacity) {
        return capacity.error();
    }
    const auto most_events = common.most_events();
    if (!most_events) {
        return most_events.error();
    }
    if (!batches.empty()) {
        if (Status possible = can_predict(path_a, path_b, batches, *most_events); !possible) {
            return possible;
        }
    }
    const auto compared = compare_files(path_a, path_b, *most_events);
    if (!compared) {
        return compared.error();
    }
    const Comparison& comparison = compared->comparison;
    if (!html.empty()) {
        if (compared->from_json) {
            return Error{ErrorCode::kUsage,
                         "--html needs two traces or snapshots: JSON does not contain the events"};
        }
        Status written = write_page(arguments, comparison);
        if (!written || html == "-") {
            return written;
        }
    }
    std::vector<BatchPrediction> predictions;
    if (!batches.empty()) {
        if (compared->from_json) {
            return Error{ErrorCode::kUsage,
                         "--batch needs two traces: JSON does not contain the requests"};
        }
        auto predicted = predict(path_a, path_b, batches, asked, *capacity);
        if (!predicted) {
            return predicted.error();
        }
        predictions = std::move(predicted).value();
    }
    if (!common.json.empty()) {
        return write_output(common.json, compare_json(comparison, predictions));
    }
    std::string text;
    for (const BatchPrediction& prediction : predictions) {
        text += batch_text(prediction, common.terminal());
    }
    text += compare_text(comparison, common.terminal());
    if (!html.empty()) {
        text += "page written to " + printable(html) + "\n";
    }
    return write_text(text);
}

}  // namespace fragtrace::analyzer
