#include "analyzer/analysis/job/process_summary.h"

#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/analysis/metrics/other_processes.h"
#include "analyzer/support/terminal.h"
#include "analyzer/trace/symbols.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <string_view>
#include <sys/stat.h>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kProgramWidth = 300;
constexpr std::size_t kLineWidth = 160;
constexpr std::size_t kNameWidth = 100;
constexpr std::size_t kFileWidth = 255;
constexpr std::uint64_t kMostUnits = 9999;  // four digits in the file

std::uint64_t number_fact(const Timeline& tables, const std::string& key) {
    const std::string text = tables.fact(key);
    std::uint64_t number = 0;
    const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && at == text.data() + text.size() ? number : 0;
}

CompactCurve compact(const MemoryCurve& curve, bool reserved_known) {
    CompactCurve made;
    if (curve.bin_ns == 0) {
        return made;
    }
    std::uint64_t most = 1;
    for (const auto* values : {&curve.reserved, &curve.allocated}) {
        most = std::max(most, *std::max_element(values->begin(), values->end()));
    }
    made.bin_ns = curve.bin_ns;
    made.unit_bytes = std::bit_ceil((most - 1) / kMostUnits + 1);
    const auto units = [&](std::uint64_t bytes) {
        return static_cast<std::uint16_t>(bytes / made.unit_bytes +
                                          (bytes % made.unit_bytes != 0 ? 1 : 0));
    };
    for (std::size_t i = 0; i < curve.reserved.size(); ++i) {
        if (reserved_known) {
            made.reserved.push_back(units(curve.reserved[i]));
        }
        made.allocated.push_back(units(curve.allocated[i]));
    }
    return made;
}

ProcessDevice device_of(const TraceSummary& process,
                        const DeviceSummary& summary,
                        Symbolizer* symbols) {
    const Timeline& tables = process.tables;
    const DeviceMetrics& metrics = summary.metrics;
    const std::string key = fmt::format("device.{}.", summary.device);
    ProcessDevice device;
    device.device = summary.device;
    device.name = summary_word(device_name(tables, summary.device), kNameWidth);
    device.uuid = summary_word(tables.fact(key + "uuid"), kNameWidth);
    device.total_bytes =
        metrics.total_bytes != 0 ? metrics.total_bytes : number_fact(tables, key + "total_bytes");
    // When libraries held most. The driver's report may be older than their memory.
    device.capacity_bytes =
        metrics.capacity_bytes - std::min(metrics.capacity_bytes, metrics.beside_pool.excess_bytes);
    device.context_bytes = context_memory(tables, summary.device).bytes;
    device.run = metrics.summary;
    if (device.run.ooms == 0 && (metrics.state_only || !process.failures_known())) {
        device.run.ooms = kUnknown64;
    }
    device.peak_time_ns = summary.peak_time_ns;
    device.first_oom_ns = metrics.first_oom_ns;
    device.final_oom_ns = summary.final_oom_ns;
    device.near_end_oom_ns = summary.near_end_oom_ns;
    device.blocks = metrics.blocks;
    device.blocks_are_pool_blocks = metrics.block_layer;
    device.state_only = metrics.state_only;
    device.holders = lines_of(summary.holders, symbols);
    device.all_holders = device.holders.size() <= kMostSummaryLines;
    device.holders.resize(std::min(device.holders.size(), kMostSummaryLines));
    device.curve = compact(summary.curve, segments_known(metrics.summary));
    return device;
}

// FNV-1a
void mix(std::uint64_t* hash, std::string_view bytes) {
    for (const char byte : bytes) {
        *hash = (*hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
    }
    *hash = (*hash ^ 0xff) * 0x100000001b3;
}

void mix(std::uint64_t* hash, std::uint64_t number) {
    mix(hash, std::string_view(reinterpret_cast<const char*>(&number), sizeof number));
}

// The name of the set of virtual cards, as the virtual GPU's settings say; "-" if the process
// shares its virtual cards with nobody.
std::string card_set_of(const Timeline& tables) {
    if (tables.fact("virtual") != "1") {
        return "";
    }
    const std::string settings = tables.fact("environment.FRAGTRACE_VIRTUAL_GPU");
    std::string name = tables.fact("environment.FRAGTRACE_VIRTUAL_GPU_CARDS");
    constexpr std::string_view kOption = ",shared=";
    if (const std::size_t at = settings.find(kOption); at != std::string::npos) {
        name = settings.substr(at + kOption.size());
        name = name.substr(0, name.find(','));
    }
    return name.empty() || name == "off" ? "-" : summary_word(name, kNameWidth);
}

// The earliest of these times of all devices, on the clock that all processes share.
std::optional<std::uint64_t> earliest(const ProcessSummary& process,
                                      std::optional<std::uint64_t> ProcessDevice::*time_ns) {
    std::optional<std::uint64_t> first;
    for (const ProcessDevice& device : process.devices) {
        if (device.*time_ns) {
            const std::uint64_t at = process.start_unix_ns + *(device.*time_ns);
            first = std::min(first.value_or(at), at);
        }
    }
    return first;
}

}  // namespace

std::vector<LineHolds> lines_of(const std::vector<HeldBy>& holders, Symbolizer* symbols) {
    std::map<std::string, LineHolds> by_name;
    for (const HeldBy& holder : holders) {
        const std::string name = summary_word(
            holder.label.empty() ? symbols->describe(holder.origin) : holder.label, kLineWidth);
        LineHolds& line = by_name[name];
        line.bytes += static_cast<std::uint64_t>(holder.bytes);
        line.blocks += static_cast<std::uint64_t>(holder.blocks);
    }
    std::vector<LineHolds> lines;
    for (auto& [name, line] : by_name) {
        line.line = name;
        lines.push_back(std::move(line));
    }
    std::stable_sort(lines.begin(), lines.end(), [](const LineHolds& a, const LineHolds& b) {
        return a.bytes > b.bytes;
    });
    return lines;
}

bool ProcessSummary::all_segments_known() const {
    return std::all_of(devices.begin(), devices.end(), [](const ProcessDevice& device) {
        return segments_known(device.run);
    });
}

std::uint64_t ProcessSummary::sum(std::uint64_t RunFigures::*part) const {
    std::uint64_t all = 0;
    for (const ProcessDevice& device : devices) {
        if (device.run.*part == kUnknown64) {
            return kUnknown64;
        }
        all += device.run.*part;
    }
    return all;
}

std::uint64_t peak_of(const ProcessDevice& device) {
    return reserved_known(device.run) ? device.run.peak_reserved : device.run.peak_allocated;
}

std::uint64_t peak_of(const ProcessSummary& process) {
    std::uint64_t all = 0;
    for (const ProcessDevice& device : process.devices) {
        all += peak_of(device);
    }
    return all;
}

std::optional<std::uint64_t> ProcessSummary::first_oom() const {
    return earliest(*this, &ProcessDevice::first_oom_ns);
}

std::optional<std::uint64_t> ProcessSummary::fatal_oom() const {
    if (end.ending == Ending::kExec || outlived_failure) {
        return std::nullopt;  // it went on
    }
    const auto last = earliest(*this, &ProcessDevice::final_oom_ns);
    const bool ended_normally =
        (end.ending == Ending::kNormal || end.ending == Ending::kQuickExit) && end.code == 0;
    return last || ended_normally ? last : earliest(*this, &ProcessDevice::near_end_oom_ns);
}

std::optional<std::uint64_t> ProcessSummary::named_oom() const {
    const auto fatal = fatal_oom();
    return fatal ? fatal : first_oom();
}

std::uint64_t ProcessSummary::ended_at() const {
    return start_unix_ns +
           std::max({end_ns.value_or(0), killed.alive_ns.value_or(0), last_event_ns});
}

std::optional<std::uint64_t> ProcessSummary::ended_by() const {
    const auto seen_ns = replaced_ns ? replaced_ns : killed.seen_ns;
    return end_ns && !replaced_ns ? std::optional(ended_at())
           : seen_ns              ? std::optional(std::max(start_unix_ns + *seen_ns, ended_at()))
                                  : std::nullopt;
}

const FailureSummary* ProcessSummary::named_failure() const {
    const auto named = named_oom();
    const FailureSummary* first = nullptr;
    for (const ProcessDevice& device : devices) {
        for (const FailureSummary& failure : device.failures) {
            if (start_unix_ns + failure.time_ns == named) {
                return &failure;
            }
            if (first == nullptr || failure.time_ns < first->time_ns) {
                first = &failure;
            }
        }
    }
    return first;
}

ProcessSummary summarize_process(const TraceSummary& summary, const std::string& path) {
    const Timeline& tables = summary.tables;
    ProcessSummary process;
    process.path = path;
    process.analyzer_version = FRAGTRACE_VERSION;
    process.file = summary_word(std::filesystem::path(path).filename().string(), kFileWidth);
    process.place.rank = tables.rank;
    process.pid = tables.pid;
    process.start_unix_ns = tables.start_unix_ns;
    process.job = summary_word(tables.fact("environment.FRAGTRACE_JOB"), kNameWidth);
    process.card_set = card_set_of(tables);
    process.program = summary_word(tables.fact("command_line", tables.path), kProgramWidth);
    process.events = summary.events;
    process.events_lost = tables.damage.events_lost;
    process.pool_failures = summary.pool_failures;
    process.recording_gaps = summary.recording_gaps;
    process.damaged = tables.damage.bytes_unreadable != 0 || tables.damage.chunks_unreadable != 0;
    process.last_event_ns = summary.last_event_ns;
    process.end = process_end(tables);
    process.import = summary_word(tables.fact("import"), kNameWidth);
    Symbolizer symbols(tables);
    for (const DeviceSummary& device : summary.devices) {
        process.devices.push_back(device_of(summary, device, &symbols));
    }
    for (const ContextTime& context : summary.contexts) {
        const ContextMemory memory = context_memory(tables, context.device);
        const std::string uuid = tables.fact(fmt::format("device.{}.uuid", context.device));
        process.contexts.push_back({.device = context.device,
                                    .uuid = summary_word(uuid, kNameWidth),
                                    .bytes = memory.bytes,
                                    .measured = summary_word(memory.measured, kNameWidth),
                                    .begin_ns = context.begin_ns,
                                    .end_ns = context.end_ns});
    }
    return process;
}

void set_place(const JobPlace& place, ProcessSummary* process) {
    process->place = place;
    for (std::string* word : {&process->place.host,
                              &process->place.boot_id,
                              &process->place.pid_namespace,
                              &process->place.job_id,
                              &process->place.rank_source,
                              &process->place.copy_reason}) {
        *word = summary_word(*word, kNameWidth);
    }
    process->place.ancestors.resize(std::min(place.ancestors.size(), kMostSummaryAncestors));
}

TraceFile trace_file(const std::string& path) {
    struct stat status = {};
    if (stat(path.c_str(), &status) != 0) {
        return {};
    }
    constexpr std::int64_t kSecond = 1'000'000'000;
    return {.size_bytes = static_cast<std::uint64_t>(status.st_size),
            .modified_ns = status.st_mtim.tv_sec * kSecond + status.st_mtim.tv_nsec};
}

std::string fingerprint(const ProcessSummary& process) {
    std::uint64_t hash = 0xcbf29ce484222325;
    mix(&hash, process.devices.size());
    for (const ProcessDevice& device : process.devices) {
        mix(&hash, device.run.peak_reserved);
        mix(&hash, device.run.peak_allocated);
        mix(&hash, device.run.ooms);
        for (const LineHolds& line : device.holders) {
            mix(&hash, line.line);
            mix(&hash, line.bytes);
        }
    }
    return fmt::format("{:016x}", hash);
}

std::string summary_word(std::string_view text, std::size_t width) {
    std::string word = printable(text.substr(0, width));
    // The cut may have split a character.
    if (text.size() > width && width > 3) {
        std::size_t end = width - 3;
        while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) {
            --end;
        }
        word = printable(text.substr(0, end)) + "...";
    }
    return word;
}

}  // namespace fragtrace::analyzer
