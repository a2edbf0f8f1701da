#include "analyzer/analysis/job/parsed_summary.h"

#include "analyzer/analysis/job/process_summary_json.h"
#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/trace/ending_name.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kMostVersion = 40;  // bytes

const Parsed& member(const Parsed& object, const char* key) {
    static const Parsed kNull;
    const auto found = object.find(key);
    return found == object.end() ? kNull : *found;
}

std::uint64_t count(const Parsed& object, const char* key) {
    const Parsed& value = member(object, key);
    if (!value.is_number_unsigned()) {
        throw BadSummary{fmt::format("'{}' is not a count", key)};
    }
    return value.get<std::uint64_t>();
}

std::uint64_t count_or(const Parsed& object, const char* key, std::uint64_t otherwise) {
    return member(object, key).is_null() ? otherwise : count(object, key);
}

// Summaries of earlier versions lack some times.
std::optional<std::uint64_t> time_if_known(const Parsed& object, const char* key) {
    return member(object, key).is_null() ? std::nullopt : std::optional(count(object, key));
}

int small_or(const Parsed& object, const char* key, int most) {
    if (member(object, key).is_null()) {
        return -1;
    }
    const std::uint64_t value = count(object, key);
    if (value > static_cast<std::uint64_t>(most)) {
        throw BadSummary{fmt::format("'{}' is larger than {}", key, most)};
    }
    return static_cast<int>(value);
}

bool flag(const Parsed& object, const char* key) {
    const Parsed& value = member(object, key);
    if (!value.is_boolean()) {
        throw BadSummary{fmt::format("'{}' is neither true nor false", key)};
    }
    return value.get<bool>();
}

std::optional<bool> flag_if_known(const Parsed& object, const char* key) {
    return object.contains(key) && !object[key].is_null() ? std::optional(flag(object, key))
                                                          : std::nullopt;
}

std::string text(const Parsed& object, const char* key, std::size_t most = 400) {
    const Parsed& value = member(object, key);
    if (value.is_null()) {
        return "";
    }
    if (!value.is_string()) {
        throw BadSummary{fmt::format("'{}' is not text", key)};
    }
    return summary_word(value.get_ref<const std::string&>(), most);
}

const Parsed& list(const Parsed& object, const char* key, std::size_t most) {
    const Parsed& value = member(object, key);
    if (!value.is_array() || value.size() > most) {
        throw BadSummary{fmt::format("'{}' is not a list of at most {}", key, most)};
    }
    return value;
}

const Parsed& checked_object(const Parsed& value, const char* what) {
    if (!value.is_object()) {
        throw BadSummary{fmt::format("{} is not an object", what)};
    }
    return value;
}

std::vector<std::uint16_t> bins(const Parsed& curve, const char* key) {
    std::vector<std::uint16_t> made;
    for (const Parsed& value : list(curve, key, MemoryCurveBuilder::kMostBins)) {
        if (!value.is_number_unsigned() || value.get<std::uint64_t>() > 0xffff) {
            throw BadSummary{fmt::format("a bin of '{}' is not a small count", key)};
        }
        made.push_back(value.get<std::uint16_t>());
    }
    return made;
}

CompactCurve curve_of(const Parsed& device) {
    CompactCurve curve;
    const Parsed& value = member(device, "curve");
    if (value.is_null()) {
        return curve;
    }
    checked_object(value, "'curve'");
    curve.bin_ns = count(value, "bin_ns");
    curve.unit_bytes = count(value, "unit_bytes");
    curve.reserved = bins(value, "reserved");
    curve.allocated = bins(value, "allocated");
    constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
    if (curve.bin_ns == 0 || curve.bin_ns > kMost || curve.unit_bytes == 0 ||
        curve.unit_bytes > (kMost >> 16) || curve.allocated.empty() ||
        (!curve.reserved.empty() && curve.reserved.size() != curve.allocated.size())) {
        throw BadSummary{"'curve' is impossible"};
    }
    return curve;
}

std::vector<ReplaySummary> replays_of(const Parsed& device, const char* key) {
    std::vector<ReplaySummary> replays;
    for (const Parsed& row : list(device, key, kMostSummaryReplays)) {
        checked_object(row, "a replay");
        replays.push_back({.name = text(row, "name"),
                           .total_bytes = count_or(row, "total_bytes", 0),
                           .ooms = count(row, "ooms"),
                           .retries = count(row, "retries"),
                           .peak_reserved = count(row, "peak_reserved_bytes"),
                           .usable = flag(row, "usable"),
                           .recorded = flag(row, "recorded"),
                           .gets_past = flag(row, "gets_past"),
                           .rest_fits = flag_if_known(row, "rest_fits"),
                           .class_words = text(row, "class")});
    }
    return replays;
}

void read_figures(const Parsed& json, RunFigures* run) {
    const Parsed& peak = checked_object(member(json, "peak"), "'peak'");
    run->peak_requested = count_or(peak, "requested", kUnknown64);
    run->peak_allocated = count(peak, "allocated");
    // null is unknown; without the key, the summary lacks a figure.
    run->ooms = json.contains("ooms") ? count_or(json, "ooms", kUnknown64) : count(json, "ooms");
    const Parsed& parts = member(json, "waste_at_peak");
    if (parts.is_null()) {
        forget_segments(run);
        run->peak_reserved = count_or(peak, "reserved", kUnknown64);
        return;
    }
    checked_object(parts, "'waste_at_peak'");
    run->peak_active = count(peak, "active");
    run->peak_reserved = count(peak, "reserved");
    WasteSplit& waste = run->waste_at_peak;
    waste = {.reserved = run->peak_reserved};
    waste.rounding = count(parts, "rounding");
    waste.slack = count(parts, "slack");
    waste.pending = count(parts, "pending");
    waste.releasable = count(parts, "releasable");
    waste.inactive_split = count(parts, "inactive_split");
    std::uint64_t left = waste.reserved;
    for (const std::uint64_t part :
         {waste.rounding, waste.slack, waste.pending, waste.releasable, waste.inactive_split}) {
        if (part > left) {
            throw BadSummary{"the parts of 'waste_at_peak' are more than the peak"};
        }
        left -= part;
    }
    waste.requested = left;
    run->segments_allocated = count(json, "segments_allocated");
    run->segments_freed = count(json, "segments_freed");
    run->retries = count(json, "retries");
}

ProcessDevice device_of(const Parsed& json) {
    checked_object(json, "a device");
    ProcessDevice device;
    const std::uint64_t index = count(json, "index");
    if (index >= kMaxDevices) {
        throw BadSummary{fmt::format("device {} does not exist", index)};
    }
    device.device = static_cast<DeviceId>(index);
    device.name = text(json, "name");
    device.uuid = text(json, "uuid");
    device.total_bytes = count_or(json, "total_bytes", 0);
    device.capacity_bytes = count_or(json, "capacity_bytes", 0);
    device.context_bytes = count_or(json, "context_bytes", 0);
    read_figures(json, &device.run);
    device.peak_time_ns = count(json, "peak_time_ns");
    device.first_oom_ns = time_if_known(json, "first_oom_ns");
    device.final_oom_ns = time_if_known(json, "final_oom_ns");
    device.near_end_oom_ns = time_if_known(json, "near_end_oom_ns");
    device.blocks = count(json, "blocks");
    device.blocks_are_pool_blocks = flag(json, "pool_blocks");
    device.state_only = flag(json, "state_only");
    for (const Parsed& row : list(json, "holders_at_peak", kMostSummaryLines)) {
        checked_object(row, "a line");
        device.holders.push_back({.line = text(row, "label"),
                                  .bytes = count(row, "bytes"),
                                  .blocks = count(row, "blocks")});
    }
    device.all_holders = flag(json, "all_holders");
    device.curve = curve_of(json);
    for (const Parsed& row : list(json, "failures", kMostSummaryFailures)) {
        checked_object(row, "a failure");
        device.failures.push_back({.time_ns = count(row, "time_ns"),
                                   .requested_bytes = count(row, "requested_bytes"),
                                   .allocated_bytes = count_or(row, "allocated_bytes", 0),
                                   .forecast_card_bytes = count_or(row, "forecast_card_bytes", 0),
                                   .verdict = text(row, "verdict"),
                                   .why = text(row, "why"),
                                   .at = text(row, "at"),
                                   .culprit = text(row, "culprit"),
                                   .remedy = text(row, "remedy")});
    }
    device.settings = replays_of(json, "settings");
    device.cards = replays_of(json, "cards");
    return device;
}

Ending ending_of(const std::string& name) {
    for (const Ending ending : {Ending::kNormal,
                                Ending::kQuickExit,
                                Ending::kExec,
                                Ending::kKilled,
                                Ending::kRunning,
                                Ending::kContinued,
                                Ending::kNotRecorded}) {
        if (name == ending_name(ending)) {
            return ending;
        }
    }
    throw BadSummary{"'ended' has an unknown value"};
}

ProcessId process_id(const Parsed& json) {
    if (!json.is_array() || json.size() != 2 || !json[0].is_number_unsigned() ||
        !json[1].is_number_unsigned() || json[0].get<std::uint64_t>() > UINT32_MAX) {
        throw BadSummary{"an ancestor is not a process id with its start"};
    }
    return {json[0].get<std::uint32_t>(), json[1].get<std::uint64_t>()};
}

JobPlace place_of(const Parsed& json, std::uint32_t pid) {
    constexpr int kMostRanks = 1'000'000;
    JobPlace place;
    place.rank = small_or(json, "rank", INT32_MAX);
    place.rank_source = text(json, "rank_source");
    place.inherited_rank = small_or(json, "helper_of_rank", INT32_MAX);
    place.local_rank = small_or(json, "local_rank", kMostRanks);
    place.world_size = small_or(json, "world_size", kMostRanks);
    place.generation = small_or(json, "generation", kMostRanks);
    place.host = text(json, "host");
    place.boot_id = text(json, "boot_id");
    place.pid_namespace = text(json, "pid_namespace");
    place.job_id = text(json, "job_id");
    place.process = {pid, count(json, "start_ticks")};
    for (const Parsed& ancestor : list(json, "ancestors", kMostSummaryAncestors)) {
        place.ancestors.push_back(process_id(ancestor));
    }
    const Parsed& session = list(json, "session", place.session.size());
    if (session.size() != place.session.size() || !session[0].is_number_unsigned() ||
        !session[1].is_number_unsigned()) {
        throw BadSummary{"'session' is not two counts"};
    }
    place.session = {session[0].get<std::uint64_t>(), session[1].get<std::uint64_t>()};
    place.part =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(count(json, "part"), UINT32_MAX));
    place.copy_reason = text(json, "copy_reason");
    return place;
}

ProcessContext context_of(const Parsed& json) {
    checked_object(json, "a context");
    const std::uint64_t device = count(json, "device");
    if (device >= kMaxDevices) {
        throw BadSummary{fmt::format("device {} does not exist", device)};
    }
    ProcessContext context{.device = static_cast<DeviceId>(device),
                           .uuid = text(json, "uuid"),
                           .bytes = count_or(json, "bytes", 0),
                           .measured = text(json, "measured"),
                           .begin_ns = count(json, "begin_ns")};
    context.end_ns = time_if_known(json, "end_ns");
    return context;
}

std::string file_name_of(const Parsed& json) {
    std::string name = text(json, "file");
    if (name.empty() || name.find('/') != std::string::npos) {
        throw BadSummary{"'file' is not the name of a file"};
    }
    return name;
}

}  // namespace

ProcessSummary summary_of(const Parsed& json) {
    constexpr int kMostCode = 255;
    constexpr int kMostSignal = 64;
    ProcessSummary process;
    process.file = file_name_of(json);
    process.trace.size_bytes = count(json, "trace_bytes");
    process.trace.modified_ns = static_cast<std::int64_t>(
        std::min<std::uint64_t>(count(json, "trace_modified_ns"), INT64_MAX));
    const std::uint64_t pid = count(json, "process");
    if (pid > UINT32_MAX) {
        throw BadSummary{"'process' is no process id"};
    }
    process.pid = static_cast<std::uint32_t>(pid);
    process.place = place_of(json, process.pid);
    process.start_unix_ns = count(json, "start_unix_ns");
    process.job = text(json, "job");
    process.card_set = text(json, "card_set");
    process.program = text(json, "command_line");
    process.events = count(json, "events");
    process.events_lost = count(json, "events_lost");
    process.pool_failures =
        member(json, "pool_failures").is_null() ? 0 : count(json, "pool_failures");
    process.recording_gaps =
        !member(json, "recording_gaps").is_null() && flag(json, "recording_gaps");
    process.damaged = flag_if_known(json, "damaged").value_or(false);
    process.last_event_ns = count(json, "last_event_ns");
    process.end_ns = time_if_known(json, "end_ns");
    process.killed = {.alive_ns = time_if_known(json, "alive_ns"),
                      .seen_ns = time_if_known(json, "signal_seen_ns")};
    process.end.ending = ending_of(text(json, "ended"));
    if (const int code = small_or(json, "exit_code", kMostCode); code >= 0) {
        process.end.code = code;
    }
    if (const int signal = small_or(json, "signal", kMostSignal); signal > 0) {
        process.end.signal = signal;
    }
    process.import = text(json, "import");
    process.analyzer_version = text(json, "analyzer_version", kMostVersion);
    process.analysed = flag(json, "analysed");
    process.replayed = flag(json, "replayed");
    for (const Parsed& device : list(json, "devices", kMaxDevices)) {
        process.devices.push_back(device_of(device));
    }
    if (!member(json, "contexts").is_null()) {
        for (const Parsed& context : list(json, "contexts", kMaxDevices)) {
            process.contexts.push_back(context_of(context));
        }
    }
    return process;
}

UnreadableTrace unreadable_of(const Parsed& json) {
    return {file_name_of(json), text(json, "reason", kMostReasonBytes)};
}

}  // namespace fragtrace::analyzer
