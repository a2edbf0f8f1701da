#include "analyzer/analysis/job/process_summary_json.h"

#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/support/byte_stream.h"
#include "analyzer/support/json_input.h"
#include "analyzer/support/look_at.h"
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

// A file begins with this, the number of its schema, and kBeginEnd.
constexpr std::string_view kBegin = "{\"schema\":";
constexpr std::string_view kBeginEnd = ",\"process_summaries\":[";
constexpr std::string_view kSchemaKey = "schema";
constexpr std::uint64_t kSchema = 1;
constexpr std::size_t kMostVersion = 40;   // bytes
constexpr std::size_t kMostReason = 1000;  // bytes; it begins with a path

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
        rows.push_back({{"time_ns", failure.time_ns},
                        {"requested_bytes", failure.requested_bytes},
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
    const Json json = {{"file", trace.file}, {"reason", summary_word(trace.reason, kMostReason)}};
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
        put(fmt::format("{}{}{}", kBegin, kSchema, kBeginEnd));
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

constexpr std::string_view kSpace = " \t\r\n";  // of JSON

bool is_summaries_file(const std::string& path) {
    constexpr std::size_t kMostBytes = 256;
    const auto file = look_at(path);
    std::array<char, kMostBytes> first = {};
    std::string_view text(first.data(), file ? file->read_at(0, first.data(), first.size()) : 0);
    // Takes a token and the white space before it: other programs format JSON differently.
    const auto take = [&text](std::string_view token) {
        std::string_view rest = text.substr(std::min(text.find_first_not_of(kSpace), text.size()));
        const bool found = rest.starts_with(token);
        if (found) {
            text = rest.substr(token.size());
        }
        return found;
    };
    constexpr std::size_t kMostDigits = 9;
    if (!take("{") || !take("\"schema\"") || !take(":")) {
        return false;
    }
    text = text.substr(std::min(text.find_first_not_of(kSpace), text.size()));
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    text = text.substr(digits);
    if (digits == 0 || digits > kMostDigits || !take(",")) {
        return false;
    }
    return take("\"process_summaries\"");
}

namespace {

// Sorted keys: many keys of a made-up file must not make look-ups slow.
using Parsed = nlohmann::json;

// Thrown within this file if the schema is not kSchema.
struct OtherSchema {};

// Thrown within this file while a summary is read.
struct BadSummary {
    std::string what;
};

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
    if (!member(json, "first_oom_ns").is_null()) {
        device.first_oom_ns = count(json, "first_oom_ns");
    }
    if (!member(json, "final_oom_ns").is_null()) {
        device.final_oom_ns = count(json, "final_oom_ns");
    }
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
                                Ending::kContinued}) {
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

std::string file_name_of(const Parsed& json) {
    std::string name = text(json, "file");
    if (name.empty() || name.find('/') != std::string::npos) {
        throw BadSummary{"'file' is not the name of a file"};
    }
    return name;
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
    if (!member(json, "end_ns").is_null()) {
        context.end_ns = count(json, "end_ns");
    }
    return context;
}

ProcessSummary process_of(const Parsed& json) {
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
    process.last_event_ns = count(json, "last_event_ns");
    // Summaries of earlier versions lack these times.
    const auto time = [&json](const char* key) {
        return member(json, key).is_null() ? std::nullopt : std::optional(count(json, key));
    };
    process.end_ns = time("end_ns");
    process.killed = {.alive_ns = time("alive_ns"), .seen_ns = time("signal_seen_ns")};
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

// Gives the parser one byte after the other. Ends early if it takes too many for one summary, which
// is between two calls of next().
class SummaryBytes {
  public:
    explicit SummaryBytes(const InputFile& file) : stream_(file) {}

    [[nodiscard]] bool at_end() { return too_long() || !stream_.require(1); }

    [[nodiscard]] char now() const { return static_cast<char>(*stream_.data()); }

    void advance() {
        stream_.skip(1);
        ++taken_;
    }

    void next() { taken_ = 0; }

    [[nodiscard]] bool too_long() const { return taken_ > kMostBytes; }

  private:
    static constexpr std::uint64_t kMostBytes = 64 << 10;

    ByteStream stream_;
    std::uint64_t taken_ = 0;
};

Error bad_file(const std::string& path, std::string_view what) {
    return {ErrorCode::kInput,
            fmt::format("{}: {}. Give what `fraganalyze summarize TRACE -o FILE` or `fraganalyze "
                        "merge` wrote.",
                        path,
                        what)};
}

Error other_schema(const std::string& path, std::uint64_t schema) {
    return {ErrorCode::kInput,
            fmt::format("{}: another version of fraganalyze wrote these summaries (schema {}), and "
                        "this one ({}) reads schema {}. Make them again with this version: "
                        "`fraganalyze summarize TRACE -o FILE`.",
                        path,
                        schema == 0 ? "unknown" : std::to_string(schema),
                        FRAGTRACE_VERSION,
                        kSchema)};
}

}  // namespace

Status read_summaries(const std::string& path,
                      const std::function<void(ProcessSummary)>& take,
                      const std::function<void(UnreadableTrace)>& take_unreadable) {
    // Depths as nlohmann/json counts them: the file's object is 0, its list 1, a summary 2.
    constexpr int kSummaryDepth = 2;
    constexpr int kMostDepth = 7;
    const auto file = InputFile::open(path);
    if (!file) {
        return file.error();
    }
    SummaryBytes bytes(*file);
    std::size_t summaries = 0;
    std::uint64_t schema = 0;
    enum class List : std::uint8_t { kNone, kSummaries, kUnreadable };
    List list = List::kNone;
    const auto visit = [&](int depth, Parsed::parse_event_t event, Parsed& value) {
        if (depth > kMostDepth) {
            throw BadSummary{"its parts are nested too deeply"};
        }
        if (event == Parsed::parse_event_t::key && depth == 1) {
            list = value == "process_summaries" ? List::kSummaries
                   : value == "unreadable"      ? List::kUnreadable
                                                : List::kNone;
            if (list != List::kNone && schema != kSchema) {
                throw OtherSchema{};
            }
        } else if (event == Parsed::parse_event_t::value && depth == 1 && list == List::kNone) {
            schema = value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
        }
        if (event != Parsed::parse_event_t::object_end || depth != kSummaryDepth ||
            list == List::kNone) {
            return true;
        }
        if (list == List::kSummaries) {
            take(process_of(value));
            ++summaries;
        } else {
            // Checked also if the caller does not want it.
            UnreadableTrace trace{file_name_of(value), text(value, "reason", kMostReason)};
            if (take_unreadable) {
                take_unreadable(std::move(trace));
            }
        }
        bytes.next();
        return false;  // the value is not kept
    };
    try {
        const Parsed rest = Parsed::parse(JsonInput(&bytes), JsonInput<SummaryBytes>(), visit);
        if (!rest.is_object() || !rest.contains("process_summaries") ||
            !rest.contains(kSchemaKey)) {
            return bad_file(path, "is no file of process summaries");
        }
        if (schema != kSchema) {
            return other_schema(path, schema);
        }
    } catch (const OtherSchema&) {
        return other_schema(path, schema);
    } catch (const BadSummary& bad) {
        return bad_file(path, fmt::format("summary {}: {}", summaries + 1, bad.what));
    } catch (const Parsed::parse_error& error) {
        return bad_file(path,
                        bytes.too_long()
                            ? fmt::format("summary {}: is longer than any summary", summaries + 1)
                            : fmt::format("is no JSON (byte {})", error.byte));
    } catch (const Parsed::exception&) {
        return bad_file(path, fmt::format("summary {}: has an impossible value", summaries + 1));
    }
    return Ok{};
}

}  // namespace fragtrace::analyzer
