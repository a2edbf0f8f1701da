// fraganalyze validate FILE: checks every placement of a replay or of a plan.
#include "analyzer/analysis/analyze.h"
#include "analyzer/analysis/validation.h"
#include "analyzer/commands/arguments.h"
#include "analyzer/commands/registry.h"
#include "analyzer/commands/replay_options.h"
#include "analyzer/report/json/json_figures.h"
#include "analyzer/report/text/text_parts.h"
#include "analyzer/support/input_file.h"
#include "analyzer/support/output_file.h"
#include "analyzer/support/units.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

using Json = nlohmann::ordered_json;

// Prints the text or writes the JSON. A violation is an error in both cases.
Status finish(const CommonOptions& common,
              const Json& json,
              const std::string& text,
              const std::string& violation) {
    if (!common.json.empty()) {
        const Status written = write_output(
            common.json, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
        if (!written) {
            return written;
        }
    }
    if (!violation.empty()) {
        return Error{ErrorCode::kCheckFailed, fmt::format("{}: {}", common.trace, violation)};
    }
    return common.json.empty() ? write_text(text) : Status(Ok{});
}

Status validate_plan(const CommonOptions& common,
                     const InputFile& file,
                     std::optional<std::uint64_t> capacity_bytes) {
    std::string text(file.size(), '\0');
    text.resize(file.read_at(0, text.data(), text.size()));
    const auto plan = check_plan(text, common.trace, capacity_bytes);
    if (!plan) {
        return plan.error();
    }
    const Json json = {{"schema", 1},
                       {"plan", common.trace},
                       {"buffers", plan->buffers},
                       {"height_bytes", plan->height_bytes},
                       {"load_bytes", plan->load_bytes},
                       {"violation", plan->violation}};
    const double ratio = plan->load_bytes == 0 ? 1
                                               : static_cast<double>(plan->height_bytes) /
                                                     static_cast<double>(plan->load_bytes);
    const std::string sentence = fmt::format(
        "No overlap among {}; height {} bytes, {:.3f} times the largest sum of live sizes ({}).\n",
        format_counted(plan->buffers, "buffer", "buffers"),
        plan->height_bytes,
        ratio,
        plan->load_bytes);
    return finish(common, json, sentence, plan->violation);
}

std::string replay_sentences(const Candidate& candidate, const ReplayValidation& validation) {
    const ReplayCheck& check = validation.check;
    std::string text = fmt::format("No violation in {} of pool {} (settings: {}), {} for it.\n",
                                   format_counted(check.placements, "placement", "placements"),
                                   candidate.pool,
                                   candidate.config.empty() ? "default" : candidate.config,
                                   format_bytes(candidate.capacity_bytes));
    text +=
        "  placements   large enough, aligned to 256 bytes, never over a block in use, at the "
        "address in the pool\n";
    text += validation.streams_apart
                ? "  streams      a segment serves one stream; a freed block waits for events of "
                  "other streams\n"
                : "  streams      not checked: this pool does not separate streams\n";
    text += fmt::format(
        "  sums         requested, allocated, active and reserved after every call; never above "
        "{} bytes\n",
        candidate.capacity_bytes);
    text += fmt::format(
        "  address map  compared {}: no overlap of segments, no gaps, exactly the live blocks\n",
        format_counted(check.comparisons, "time", "times"));
    return text;
}

Status validate_trace(const CommonOptions& common,
                      const ReplayOptions& options,
                      std::optional<std::uint64_t> capacity_bytes) {
    const auto most_events = common.most_events();
    if (!most_events) {
        return most_events.error();
    }
    const auto analysis = analyze(
        common.trace,
        {.torch_version = common.torch_version, .holders = false, .most_events = *most_events});
    if (!analysis) {
        return analysis.error();
    }
    const auto device = options.find_device(**analysis);
    if (!device) {
        return device.error();
    }
    const Candidate candidate = options.candidate(**device, capacity_bytes);
    const auto validation = validate_replay(**device, candidate);
    if (!validation) {
        return validation.error();
    }
    const ReplayCheck& check = validation->check;
    const bool violated = !check.violation.empty();
    const Json json = {{"schema", 1},
                       {"pool", candidate.pool},
                       {"config", candidate.config},
                       {"capacity_bytes", card_bytes_json(candidate.capacity_bytes)},
                       {"device", (*device)->device},
                       {"events", (*analysis)->timeline.recorded_events()},
                       {"events_read", (*analysis)->timeline.events_read()},
                       {"placements", check.placements},
                       {"comparisons", check.comparisons},
                       {"event", violated ? Json(check.event) : Json()},
                       {"violation", check.violation}};
    const std::string part = part_text((*analysis)->timeline);
    return finish(common,
                  json,
                  (part.empty() ? "" : "Checked " + part + " (--events all).\n") +
                      replay_sentences(candidate, *validation),
                  violated ? fmt::format("event {}: {}", check.event, check.violation) : "");
}

// A plan is text with a heading, whereas a trace begins with its magic number.
bool is_plan(const InputFile& file) {
    std::string first(64, '\0');
    first.resize(file.read_at(0, first.data(), first.size()));
    return first.substr(0, first.find('\n')).find("lower") != std::string::npos;
}

}  // namespace

Status run_validate(int argc, char** argv) {
    CLI::App app(
        "Checks every placement of a simulated pool with an independent checker, which "
        "shares no code with the pools; or checks a plan (columns "
        "id,lower,upper,size,offset). The exit status is 1 for an invalid placement, with "
        "the first violation.\n\n"
        "Examples\n"
        "  fraganalyze validate train.myhost.4711.ftrace\n"
        "  fraganalyze validate train.myhost.4711.ftrace --pool best-fit --capacity 16GiB\n"
        "  fraganalyze validate plan.csv --capacity 1MiB\n",
        "fraganalyze validate");
    CommonOptions common;
    ReplayOptions options;
    common.add_trace(&app);
    options.add(&app);
    common.add_capacity(&app);
    common.add_torch_version(&app);
    common.add_events(&app);
    common.add_json(&app);
    if (const Status parsed = parse_arguments(&app, argc, argv); !parsed) {
        return parsed;
    }
    options.finish(app);
    const auto capacity = common.capacity_bytes();
    if (!capacity) {
        return capacity.error();
    }
    const auto file = InputFile::open(common.trace);
    if (!file) {
        return file.error();
    }
    return is_plan(*file) ? validate_plan(common, *file, *capacity)
                          : validate_trace(common, options, *capacity);
}

}  // namespace fragtrace::analyzer
