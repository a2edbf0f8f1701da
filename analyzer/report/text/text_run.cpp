// Lines of the text report about the run as a whole: phases, driver calls, memory outside the
// devices, failed calls, and memory of other processes.
#include "analyzer/model/phase_index.h"
#include "analyzer/model/unknown_segments.h"
#include "analyzer/report/text/text_parts.h"
#include "analyzer/support/units.h"
#include "analyzer/trace/describe_event.h"

#include <algorithm>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kPhaseRows = 8;
constexpr std::size_t kCallRows = 4;
constexpr std::size_t kFailedCalls = 3;

std::string signed_bytes(std::int64_t bytes) {
    return bytes < 0 ? "-" + format_bytes(static_cast<std::uint64_t>(-(bytes + 1)) + 1)
                     : "+" + format_bytes(static_cast<std::uint64_t>(bytes));
}

std::string side_text(const Analysis& analysis, const SideMemory& memory) {
    if (memory.allocations == 0) {
        return "";
    }
    std::string text = fmt::format("at most {} in {}",
                                   format_bytes(memory.peak_bytes),
                                   format_counted(memory.allocations, "allocation", "allocations"));
    if (const auto holders = side_holders(analysis, memory); !holders.empty()) {
        text += fmt::format(", mostly from {} ({})",
                            printable(holders.front().first),
                            format_bytes(holders.front().second));
    }
    return text;
}

// Ranges that libraries marked, summed up over all names. They get one line and no rows among the
// program's phases.
struct LibraryRanges {
    std::vector<std::string_view> libraries;
    std::uint64_t names = 0;
    std::uint64_t count = 0;

    void add(const PhaseTotals& phase) {
        if (std::find(libraries.begin(), libraries.end(), phase.library) == libraries.end()) {
            libraries.push_back(phase.library);
        }
        ++names;
        count += phase.count;
    }

    [[nodiscard]] std::string line() const {
        return names == 0 ? ""
                          : fmt::format("  and {} from {} with {} (--json has them)\n",
                                        format_counted(names, "name", "names"),
                                        fmt::join(libraries, ", "),
                                        format_counted(count, "range", "ranges"));
    }
};

}  // namespace

std::string phase_lines(const Analysis& analysis, const Terminal& terminal) {
    const std::vector<PhaseTotals>& phases = analysis.run.phases;
    std::vector<const PhaseTotals*> own;
    LibraryRanges marked;
    for (const PhaseTotals& phase : phases) {
        if (phase.library.empty()) {
            own.push_back(&phase);
        } else {
            marked.add(phase);
        }
    }
    if (own.empty()) {
        return "";
    }
    std::string text = terminal.styled(Style::kBold, "Phases") + "\n";
    text += fmt::format("  {:<28} {:>6} {:>9} {:>14} {:>13} {:>10} {:>8} {:>7}\n",
                        "phase",
                        "count",
                        "duration",
                        "peak allocated",
                        "peak reserved",
                        "change",
                        "mallocs",
                        "retries");
    const bool reserved_known = shows_reserved(analysis.timeline.facts);
    for (std::size_t i = 0; i < std::min(kPhaseRows, own.size()); ++i) {
        const PhaseTotals& phase = *own[i];
        text += fmt::format("  {:<28} {:>6} {:>9} {:>14} {:>13} {:>10} {:>8} {:>7}\n",
                            printable(shorten(phase.name, 28)),
                            format_count(phase.count),
                            format_duration(phase.time_ns),
                            format_bytes(phase.figures.peak_allocated),
                            reserved_known ? format_bytes(phase.figures.peak_reserved) : "unknown",
                            signed_bytes(phase.figures.left_bytes),
                            reserved_known ? format_count(phase.driver_allocs) : "unknown",
                            reserved_known ? format_count(phase.retries) : "unknown");
    }
    if (own.size() > kPhaseRows) {
        text += fmt::format("  and {} more (--json has all)\n", own.size() - kPhaseRows);
    }
    return text + marked.line();
}

std::vector<ReportLine> call_lines(const Analysis& analysis) {
    std::string kinds;
    std::size_t shown = 0;
    for (const CallCosts& call : analysis.run.calls) {
        if (call.total_ns == 0 || ++shown > kCallRows) {
            break;
        }
        kinds += fmt::format("{}{} {} ({}, at most {})",
                             kinds.empty() ? "" : ", ",
                             kind_name(call.kind),
                             format_duration(call.total_ns),
                             format_count(call.count),
                             format_duration(call.max_ns));
    }
    std::vector<ReportLine> lines;
    add_line(&lines, "calls", kinds);
    std::uint64_t retry_ns = 0;
    for (const RetryCost& retry : analysis.run.retries) {
        retry_ns += retry.driver_ns;
    }
    if (retry_ns != 0) {
        add_line(&lines,
                 "refusals",
                 fmt::format("cost {} in driver calls, with the releases and the second attempts",
                             format_duration(retry_ns)));
    }
    return lines;
}

namespace {

// The software that the process ran on, as far as it is known.
std::string software_text(const Timeline& timeline) {
    std::string text;
    const auto add = [&](const char* what, const std::string& value) {
        if (!value.empty()) {
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what, printable(value));
        }
    };
    // CUDA version numbers are 1000 * major + 10 * minor.
    const auto version = [](const std::string& number) {
        const bool is_number = !number.empty() && number.size() < 9 &&
                               number.find_first_not_of("0123456789") == std::string::npos;
        return is_number
                   ? fmt::format("{}.{}", std::stoi(number) / 1000, std::stoi(number) % 1000 / 10)
                   : number;
    };
    add("PyTorch", timeline.fact("torch_version"));
    add("CUDA runtime", version(timeline.fact("cuda_runtime_version")));
    add("driver for CUDA", version(timeline.fact("cuda_driver_version")));
    add("Python", timeline.fact("python.version"));
    add("on host", timeline.fact("host"));
    return text;
}

}  // namespace

std::vector<ReportLine> side_lines(const Analysis& analysis) {
    const RunMetrics& run = analysis.run;
    std::vector<ReportLine> lines;
    add_line(&lines, "ran on", software_text(analysis.timeline));
    add_line(&lines, "pinned", side_text(analysis, run.pinned));
    add_line(&lines, "managed", side_text(analysis, run.managed));
    if (run.arrays != 0) {
        add_line(&lines,
                 "arrays",
                 fmt::format("{}; the size of {} is unknown",
                             format_count(run.arrays),
                             format_count(run.arrays_unknown)));
    }
    if (run.graph_peak_bytes != 0) {
        add_line(&lines,
                 "graphs",
                 fmt::format("at most {} of device memory held by launched graphs",
                             format_bytes(run.graph_peak_bytes)));
    }
    return lines;
}

namespace {

std::string state_at(const CallOutOfMemory& call, bool import) {
    if (!call.device_known) {
        return "unknown: the trace does not say on which device";
    }
    if (import) {
        return format_bytes(call.allocated_bytes) + " allocated; free memory unknown";
    }
    return fmt::format("{} allocated, {} reserved; free: {} in the pool, {} on the device",
                       format_bytes(call.allocated_bytes),
                       format_bytes(call.reserved_bytes),
                       format_bytes(call.free_bytes),
                       call.device_free_bytes ? format_bytes(*call.device_free_bytes) : "unknown");
}

}  // namespace

FailedCalls failed_calls(const Analysis& analysis) {
    FailedCalls calls;
    for (const CallOutOfMemory& call : analysis.run.call_ooms) {
        if (calls.shown.size() == kFailedCalls) {
            calls.more = fmt::format("and {} more calls that failed because memory ran out",
                                     analysis.run.call_ooms.size() - kFailedCalls);
            break;
        }
        const Event& event = analysis.timeline.events[call.event];
        // An import may show that an allocating call failed, but not the size of the request.
        const bool import = analysis.timeline.facts.contains("import");
        FailedCall& failed = calls.shown.emplace_back();
        failed.sentence = fmt::format(
            "{} failed because memory ran out. {}",
            printable(call.function),
            import ? "The size of the request is unknown." : "It is not an allocation.");
        add_line(&failed.lines, "state", state_at(call, import));
        add_line(&failed.lines,
                 "call",
                 fmt::format("{} at {}",
                             printable(analysis.symbols->describe(event.origin)),
                             format_duration(event.time_ns)));
    }
    return calls;
}

std::string failed_call_lines(const Analysis& analysis, const Terminal& terminal) {
    const FailedCalls calls = failed_calls(analysis);
    std::string text;
    for (const FailedCall& call : calls.shown) {
        text += terminal.styled(Style::kRed, call.sentence) + "\n" + printed(call.lines);
    }
    return calls.more.empty() ? text : text + "  " + calls.more + "\n";
}

std::string phase_suffix(const Analysis& analysis, EventIndex event) {
    const std::string name =
        analysis.phases ? printable(shorten(analysis.phases->name_of(event), 40)) : std::string();
    return name.empty() ? "" : fmt::format(" in phase {}", name);
}

std::vector<ReportLine> card_lines(const DeviceAnalysis& device) {
    std::vector<ReportLine> lines;
    if (device.context.bytes != 0) {
        add_line(&lines,
                 "context",
                 fmt::format("{}{}",
                             format_bytes(device.context.bytes),
                             device.context.measured.empty()
                                 ? std::string()
                                 : ": " + printable(device.context.measured)));
    }
    for (const OtherProcesses& others : device.other_processes) {
        if (others.processes != 0) {
            add_line(
                &lines,
                "others",
                fmt::format("{} held {} of the card when memory ran out, mostly {} ({})",
                            format_counted(others.processes, "other process", "other processes"),
                            format_bytes(others.other_bytes),
                            largest_process(others.largest_pid, others.largest_program),
                            format_bytes(others.largest_bytes)));
        }
    }
    return lines;
}

}  // namespace fragtrace::analyzer
