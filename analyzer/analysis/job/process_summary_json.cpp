#include "analyzer/analysis/job/process_summary_json.h"

#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/support/output_file.h"
#include "analyzer/trace/ending_name.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace fragtrace::analyzer {
namespace {

using Json = nlohmann::ordered_json;

// A file begins with this, kSummarySchema, and kBeginEnd.
constexpr std::string_view kBegin = "{\"schema\":";
constexpr std::string_view kBeginEnd = ",\"process_summaries\":[";

// How much of a summary is written; the limits of one device.
struct Detail {
    std::size_t bins = MemoryCurveBuilder::kMostBins;
    std::size_t lines = kMostSummaryLines;
    std::size_t failures = kMostSummaryFailures;
    std::size_t replays = kMostSummaryReplays;
    std::size_t devices = kMaxDevices;
    std::size_t width = 400;  // of a text
};

std::string cut(const std::string& text, const Detail& detail) {
    return summary_word(text, detail.width);
}

template <typename T>
Json or_null(const T& value, bool known) {
    return known ? Json(value) : Json();
}

// Joins bins in pairs, as coarsen() does.
std::vector<std::uint16_t> joined(std::vector<std::uint16_t> bins, std::size_t most) {
    while (bins.size() > most) {
        for (std::size_t i = 0; i < bins.size(); i += 2) {
            bins[i / 2] = std::max(bins[i], bins[std::min(i + 1, bins.size() - 1)]);
        }
        bins.resize((bins.size() + 1) / 2);
    }
    return bins;
}

Json curve_json(const CompactCurve& curve, const Detail& detail) {
    if (curve.bin_ns == 0 || detail.bins == 0) {
        return nullptr;
    }
    std::uint64_t bin_ns = curve.bin_ns;
    for (std::size_t size = curve.allocated.size(); size > detail.bins; size = (size + 1) / 2) {
        bin_ns *= 2;
    }
    return {{"bin_ns", bin_ns},
            {"unit_bytes", curve.unit_bytes},
            {"reserved", joined(curve.reserved, detail.bins)},
            {"allocated", joined(curve.allocated, detail.bins)}};
}

Json replays_json(const std::vector<ReplaySummary>& replays, const Detail& detail) {
    Json rows = Json::array();
    for (const ReplaySummary& replay : replays) {
        if (rows.size() == detail.replays) {
            break;
        }
        rows.push_back({{"name", cut(replay.name, detail)},
                        {"total_bytes", or_null(replay.total_bytes, replay.total_bytes != 0)},
                        {"ooms", replay.ooms},
                        {"retries", replay.retries},
                        {"peak_reserved_bytes", replay.peak_reserved},
                        {"usable", replay.usable},
                        {"recorded", replay.recorded},
                        {"gets_past", replay.gets_past},
                        {"rest_fits", replay.rest_fits ? Json(*replay.rest_fits) : Json(nullptr)},
                        {"class", cut(replay.class_words, detail)}});
    }
    return rows;
}

Json failures_json(const ProcessDevice& device, const Detail& detail) {
    Json rows = Json::array();
    for (const FailureSummary& failure : device.failures) {
        if (rows.size() == detail.failures) {
            break;
        }
        rows.push_back(
            {{"time_ns", failure.time_ns},
             {"requested_bytes", failure.requested_bytes},
             {"allocated_bytes", or_null(failure.allocated_bytes, failure.allocated_bytes != 0)},
             {"forecast_card_bytes",
              or_null(failure.forecast_card_bytes, failure.forecast_card_bytes != 0)},
             {"verdict", or_null(failure.verdict, !failure.verdict.empty())},
             {"why", cut(failure.why, detail)},
             {"at", cut(failure.at, detail)},
             {"culprit", cut(failure.culprit, detail)},
             {"remedy", cut(failure.remedy, detail)}});
    }
    return rows;
}

Json device_json(const ProcessDevice& device, const Detail& detail) {
    const RunFigures& run = device.run;
    const bool known = segments_known(run);
    Json holders = Json::array();
    for (const LineHolds& line : device.holders) {
        if (holders.size() < detail.lines) {
            holders.push_back({{"label", cut(line.line, detail)},
                               {"bytes", line.bytes},
                               {"blocks", line.blocks}});
        }
    }
    const bool all_holders = device.all_holders && holders.size() == device.holders.size();
    const WasteSplit& waste = run.waste_at_peak;
    return {{"index", device.device},
            {"name", cut(device.name, detail)},
            {"uuid", or_null(device.uuid, !device.uuid.empty())},
            {"total_bytes", or_null(device.total_bytes, device.total_bytes != 0)},
            {"capacity_bytes", or_null(device.capacity_bytes, device.capacity_bytes != 0)},
            {"context_bytes", or_null(device.context_bytes, device.context_bytes != 0)},
            {"peak",
             {{"requested", or_null(run.peak_requested, requested_known(run))},
              {"allocated", run.peak_allocated},
              {"active", or_null(run.peak_active, known)},
              {"reserved", or_null(run.peak_reserved, reserved_known(run))}}},
            {"peak_time_ns", device.peak_time_ns},
            {"waste_at_peak",
             known ? Json{{"rounding", waste.rounding},
                          {"slack", waste.slack},
                          {"pending", waste.pending},
                          {"releasable", waste.releasable},
                          {"inactive_split", waste.inactive_split}}
                   : Json()},
            {"segments_allocated", or_null(run.segments_allocated, known)},
            {"segments_freed", or_null(run.segments_freed, known)},
            {"retries", or_null(run.retries, known)},
            {"ooms", or_null(run.ooms, run.ooms != kUnknown64)},
            {"first_oom_ns", device.first_oom_ns ? Json(*device.first_oom_ns) : Json()},
            {"final_oom_ns", device.final_oom_ns ? Json(*device.final_oom_ns) : Json()},
            {"near_end_oom_ns", device.near_end_oom_ns ? Json(*device.near_end_oom_ns) : Json()},
            {"blocks", device.blocks},
            {"pool_blocks", device.blocks_are_pool_blocks},
            {"state_only", device.state_only},
            {"holders_at_peak", holders},
            {"all_holders", all_holders},
            {"curve", curve_json(device.curve, detail)},
            {"failures", failures_json(device, detail)},
            {"settings", replays_json(device.settings, detail)},
            {"cards", replays_json(device.cards, detail)}};
}

std::string json_text(const ProcessSummary& process, const Detail& detail) {
    Json devices = Json::array();
    for (const ProcessDevice& device : process.devices) {
        if (devices.size() < detail.devices) {
            devices.push_back(device_json(device, detail));
        }
    }
    Json contexts = Json::array();
    for (const ProcessContext& context : process.contexts) {
        if (contexts.size() < detail.devices) {
            contexts.push_back(
                {{"device", context.device},
                 {"uuid", or_null(context.uuid, !context.uuid.empty())},
                 {"bytes", or_null(context.bytes, context.bytes != 0)},
                 {"measured", or_null(cut(context.measured, detail), !context.measured.empty())},
                 {"begin_ns", context.begin_ns},
                 {"end_ns", context.end_ns ? Json(*context.end_ns) : Json()}});
        }
    }
    const JobPlace& where = process.place;
    Json ancestors = Json::array();
    for (const ProcessId& ancestor : where.ancestors) {
        ancestors.push_back({ancestor.pid, ancestor.start_ticks});
    }
    const auto place = [](int number) { return or_null(number, number >= 0); };
    const Json json = {
        {"file", process.file},
        {"trace_bytes", process.trace.size_bytes},
        {"trace_modified_ns", process.trace.modified_ns},
        {"host", or_null(where.host, !where.host.empty())},
        {"boot_id", or_null(where.boot_id, !where.boot_id.empty())},
        {"pid_namespace", or_null(where.pid_namespace, !where.pid_namespace.empty())},
        {"process", process.pid},
        {"start_unix_ns", process.start_unix_ns},
        {"job", or_null(process.job, !process.job.empty())},
        {"card_set", or_null(process.card_set, !process.card_set.empty())},
        {"rank", place(where.rank)},
        {"rank_source", or_null(where.rank_source, !where.rank_source.empty())},
        {"helper_of_rank", place(where.inherited_rank)},
        {"local_rank", place(where.local_rank)},
        {"world_size", place(where.world_size)},
        {"generation", place(where.generation)},
        {"job_id", or_null(where.job_id, !where.job_id.empty())},
        {"start_ticks", where.process.start_ticks},
        {"ancestors", ancestors},
        {"session", where.session},
        {"part", where.part},
        {"copy_reason", or_null(where.copy_reason, !where.copy_reason.empty())},
        {"command_line", cut(process.program, detail)},
        {"events", process.events},
        {"events_lost", process.events_lost},
        {"pool_failures", process.pool_failures},
        {"recording_gaps", process.recording_gaps},
        {"damaged", process.damaged},
        {"last_event_ns", process.last_event_ns},
        {"end_ns", process.end_ns ? Json(*process.end_ns) : Json()},
        {"alive_ns", process.killed.alive_ns ? Json(*process.killed.alive_ns) : Json()},
        {"signal_seen_ns", process.killed.seen_ns ? Json(*process.killed.seen_ns) : Json()},
        {"ended", ending_name(process.end.ending)},
        {"exit_code", process.end.code ? Json(*process.end.code) : Json()},
        {"signal", process.end.signal ? Json(*process.end.signal) : Json()},
        {"import", or_null(process.import, !process.import.empty())},
        {"analyzer_version", or_null(process.analyzer_version, !process.analyzer_version.empty())},
        {"analysed", process.analysed},
        {"replayed", process.replayed},
        {"fingerprint", fingerprint(process)},
        {"devices_left_out", process.devices.size() - devices.size()},
        {"devices", devices},
        {"contexts", contexts}};
    // Texts from a trace may be invalid UTF-8.
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string json_text(const UnreadableTrace& trace) {
    const Json json = {{"file", trace.file},
                       {"reason", summary_word(trace.reason, kMostReasonBytes)}};
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string to_json_text(const ProcessSummary& process) {
    constexpr std::array<Detail, 7> kDetails = {{
        {},
        {.bins = 256},
        {.bins = 128, .lines = 8, .failures = 2, .replays = 24},
        {.bins = 64, .lines = 4, .failures = 1, .replays = 12, .width = 200},
        {.bins = 32, .lines = 2, .failures = 1, .replays = 4, .width = 120},
        {.bins = 0, .lines = 0, .failures = 0, .replays = 0, .width = 40},
        {.bins = 0, .lines = 0, .failures = 0, .replays = 0, .devices = 16, .width = 40},
    }};
    std::string text;
    for (const Detail& detail : kDetails) {
        text = json_text(process, detail);
        if (text.size() <= kMostSummaryBytes) {
            break;
        }
    }
    return text;
}

Status write_summaries(const std::string& path,
                       const std::vector<ProcessSummary>& processes,
                       const std::vector<UnreadableTrace>& unreadable) {
    return write_output(path, [&](std::FILE* file) -> Status {
        const auto put = [file](std::string_view text) {
            std::fwrite(text.data(), 1, text.size(), file);
        };
        put(fmt::format("{}{}{}", kBegin, kSummarySchema, kBeginEnd));
        for (std::size_t i = 0; i < processes.size(); ++i) {
            put(i == 0 ? "\n" : ",\n");
            put(to_json_text(processes[i]));
        }
        for (std::size_t i = 0; i < unreadable.size(); ++i) {
            put(i == 0 ? "\n],\"unreadable\":[\n" : ",\n");
            put(json_text(unreadable[i]));
        }
        put("\n]}\n");
        return Ok{};
    });
}

}  // namespace fragtrace::analyzer
