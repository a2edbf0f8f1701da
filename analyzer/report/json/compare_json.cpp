#include "analyzer/report/compare_report.h"
#include "analyzer/report/json/json_figures.h"
#include "analyzer/trace/describe_event.h"

#include <nlohmann/json.hpp>

namespace fragtrace::analyzer {
namespace {

using Json = nlohmann::ordered_json;

Json run_json(const RunProfile& run) {
    return {{"path", run.path},
            {"source", run.source == RunProfile::Source::kJson ? "json" : "trace"},
            {"command_line", run.command_line},
            {"events", run.events},
            {"events_read", run.events_read},
            {"events_lost", run.events_lost}};
}

Json device_json(const std::optional<DeviceProfile>& device) {
    if (!device) {
        return nullptr;
    }
    const RunFigures& run = device->run;
    return {{"name", device->name},
            {"peak", peaks_json(run)},
            {"requested_at_peak", if_reserved(run, run.waste_at_peak.requested)},
            {"waste_at_peak", waste_json(run)},
            {"segments_allocated", if_reserved(run, run.segments_allocated)},
            {"segments_freed", if_reserved(run, run.segments_freed)},
            {"retries", if_reserved(run, run.retries)},
            {"ooms", run.ooms == kUnknown64 ? Json() : Json(run.ooms)},
            {"state_only", device->state_only},
            {"driver_ns", run.driver_time_ns}};
}

Json held_json(const std::optional<HeldBy>& held) {
    return held ? Json{{"bytes", held->bytes}, {"blocks", held->blocks}} : Json();
}

Json holders_json(const DeviceComparison& device) {
    Json rows = Json::array();
    for (const auto* changes : {&device.grew, &device.shrank, &device.unknown}) {
        for (const LineChange& change : *changes) {
            Json stacks = Json::array();
            for (const StackChange& stack : change.stacks) {
                stacks.push_back({{"frames", stack.frames},
                                  {"a", held_json(stack.a)},
                                  {"b", held_json(stack.b)}});
            }
            rows.push_back({{"label", change.label()},
                            {"label_a", change.a ? change.a->label : change.label()},
                            {"a", held_json(change.a)},
                            {"b", held_json(change.b)},
                            {"stacks", stacks}});
        }
    }
    return rows;
}

Json phase_json(const std::optional<PhaseProfile>& phase, bool reserved_known) {
    return phase ? Json{{"count", phase->count},
                        {"peak_allocated_bytes", phase->figures.peak_allocated},
                        {"peak_reserved_bytes",
                         reserved_known ? Json(phase->figures.peak_reserved) : Json()},
                        {"left_bytes", phase->figures.left_bytes}}
                 : Json();
}

Json stretch_json(const std::optional<StretchFigures>& stretch, bool reserved_known) {
    return stretch ? Json{{"peak_allocated_bytes", stretch->peak_allocated},
                          {"peak_reserved_bytes",
                           reserved_known ? Json(stretch->peak_reserved) : Json()},
                          {"left_bytes", stretch->left_bytes}}
                   : Json();
}

Json phases_json(const Comparison& comparison) {
    Json rows = Json::array();
    const bool known = comparison.all_segments_known();
    for (std::size_t i = 0; i < comparison.phases.size(); ++i) {
        const PhaseComparison& phase = comparison.phases[i];
        Json parting;
        if (phase.parts_at) {
            parting = {{"occurrence", *phase.parts_at},
                       {"a", stretch_json(phase.a_there, known)},
                       {"b", stretch_json(phase.b_there, known)}};
        }
        rows.push_back({{"name", phase.name},
                        {"kind", range_kind_name(phase.kind)},
                        {"a", phase_json(phase.a, known)},
                        {"b", phase_json(phase.b, known)},
                        {"parting", parting},
                        {"parts_first", comparison.first_divergence == i}});
    }
    return rows;
}

Json line_json(const BatchLine& line) {
    return {{"label", line.label},
            {"fixed_bytes", line.fixed_bytes},
            {"bytes_per_item", line.bytes_per_item}};
}

Json batch_json(const BatchPrediction& prediction) {
    Json lines = Json::array();
    for (const BatchLine& line : prediction.lines) {
        lines.push_back(line_json(line));
    }
    Json rows = Json::array();
    for (const BatchRow& row : prediction.rows) {
        rows.push_back({{"batch", row.batch},
                        {"peak_allocated_bytes", row.unlimited.peak_allocated},
                        {"peak_reserved_bytes", row.unlimited.peak_reserved},
                        {"ooms", row.on_card.ooms},
                        {"retries", row.on_card.retries},
                        {"card_peak_reserved_bytes", row.on_card.peak_reserved},
                        {"recorded_peak_reserved_bytes",
                         row.recorded_reserved ? Json(*row.recorded_reserved) : Json()}});
    }
    return {
        {"device", prediction.device},
        {"class", "estimate"},
        {"capacity_bytes", card_bytes_json(prediction.capacity_bytes)},
        {"requests", prediction.requests},
        {"fitted_requests", prediction.fitted_requests},
        {"sum", line_json(prediction.sum)},
        {"lines", lines},
        {"rows", rows},
        {"largest_that_fits", prediction.largest ? Json(*prediction.largest) : Json()},
        {"least_that_fails", prediction.least_failing ? Json(*prediction.least_failing) : Json()},
        {"smaller_that_fails", prediction.fails_below ? Json(*prediction.fails_below) : Json()}};
}

}  // namespace

std::string compare_json(const Comparison& comparison,
                         const std::vector<BatchPrediction>& batches) {
    Json devices = Json::array();
    for (const DeviceComparison& device : comparison.devices) {
        devices.push_back({{"index", device.device},
                           {"a", device_json(device.a)},
                           {"b", device_json(device.b)},
                           {"holders_at_peak", holders_json(device)}});
    }
    Json settings = Json::array();
    for (const FactChange& change : comparison.settings) {
        settings.push_back({{"key", change.key}, {"a", change.a}, {"b", change.b}});
    }
    Json requests = Json::array();
    for (const FirstRequest& request : comparison.requests) {
        const auto side = [](const std::optional<std::uint64_t>& bytes, const std::string& label) {
            return bytes ? Json{{"bytes", *bytes}, {"label", label}} : Json();
        };
        requests.push_back({{"device", request.device},
                            {"number", request.number},
                            {"a", side(request.a_bytes, request.a_label)},
                            {"b", side(request.b_bytes, request.b_label)}});
    }
    const bool known = comparison.all_segments_known();
    Json iterations = Json::array();
    for (const IterationComparison& row : comparison.iterations) {
        Json parting;
        if (row.parts_at) {
            parting = {{"iteration", *row.parts_at},
                       {"a", stretch_json(row.a_there, known)},
                       {"b", stretch_json(row.b_there, known)}};
        }
        iterations.push_back({{"device", row.device},
                              {"a_count", row.a_count},
                              {"b_count", row.b_count},
                              {"class", row.from_phases ? "exact" : "estimate"},
                              {"match_rate", row.match_rate},
                              {"parting", parting}});
    }
    Json predictions = Json::array();
    for (const BatchPrediction& prediction : batches) {
        predictions.push_back(batch_json(prediction));
    }
    return Json{{"schema", 1},
                {"a", run_json(comparison.a)},
                {"b", run_json(comparison.b)},
                {"class",
                 comparison.a.events_lost + comparison.b.events_lost == 0 ? "exact" : "estimate"},
                {"devices", devices},
                {"phases", phases_json(comparison)},
                {"iterations", iterations},
                {"first_different_requests", requests},
                {"settings", settings},
                {"batches", predictions}}
               .dump(2, ' ', false, Json::error_handler_t::replace) +
           "\n";
}

}  // namespace fragtrace::analyzer
