#include "analyzer/report/text.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "analyzer/support/units.h"

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kCulpritRows = 4;
constexpr std::size_t kSettingRows = 6;

struct Limits {
    std::size_t culprits = kCulpritRows;
    std::size_t settings = kSettingRows;
    bool capacities = true;
    std::size_t assumptions = 4;
};

std::string shorten(std::string_view text, std::size_t width) {
    if (text.size() <= width) {
        return std::string(text);
    }
    return std::string(text.substr(0, width - 3)) + "...";
}

const char* ending_text(Ending ending) {
    switch (ending) {
        case Ending::kNormal: return "ended normally";
        case Ending::kQuickExit: return "ended by _exit";
        case Ending::kExec: return "became another program (exec)";
        case Ending::kKilled: return "died (killed or crashed)";
        case Ending::kRunning: return "still running";
    }
    return "died";
}

// The command line as one would have typed it: programs and scripts without their folders.
std::string command_text(const Timeline& timeline) {
    const std::string line = timeline.fact("command_line", timeline.path);
    std::string text;
    std::size_t begin = 0;
    for (int word = 0; begin < line.size(); ++word) {
        const std::size_t end = std::min(line.find(' ', begin), line.size());
        std::string part = line.substr(begin, end - begin);
        if (word < 2 && part.find('/') != std::string::npos) {
            part = part.substr(part.find_last_of('/') + 1);
        }
        text += (text.empty() ? "" : " ") + part;
        begin = end + 1;
    }
    return printable(shorten(text, 60));
}

std::string first_line(const Analysis& analysis, const Terminal& terminal) {
    const Timeline& timeline = analysis.timeline;
    const std::uint64_t end_ns = timeline.events.empty() ? 0 : timeline.events.back().time_ns;
    std::string text = terminal.styled(Style::kBold, command_text(timeline));
    text += fmt::format("  pid {}, {}, {} events, {}",
                        timeline.pid,
                        format_duration(end_ns),
                        format_count(timeline.events.size()),
                        ending_text(timeline.ending));
    const TraceDamage& damage = timeline.damage;
    if (damage.events_lost != 0) {
        text += fmt::format("; {} events LOST", format_count(damage.events_lost));
    }
    if (damage.bytes_unreadable != 0) {
        text += fmt::format("; DAMAGED: {} unreadable", format_bytes(damage.bytes_unreadable));
    }
    return text + "\n";
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
    if (whole == 0) {
        return "0 %";
    }
    const double value = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
    return fmt::format("{:.{}f} %", value, value < 9.95 && part != 0 ? 1 : 0);
}

// 100.00 only when all are equal: 99.999 must not read as 100.00.
std::string fidelity_percent(std::uint64_t equal, std::uint64_t all) {
    if (equal == all) {
        return "100.00 %";
    }
    const double value = 100.0 * static_cast<double>(equal) / static_cast<double>(all);
    return fmt::format("{:.2f} %", std::floor(value * 100) / 100);
}

std::string fidelity_line(const DeviceAnalysis& device) {
    if (!device.fidelity) {
        return "  fidelity   not measured: no caching pool was recorded\n";
    }
    const Fidelity& fidelity = *device.fidelity;
    std::string text = fmt::format(
        "  fidelity   {}: {} of {} placements and {} of {} cudaMallocs replayed equal\n",
        fidelity_percent(fidelity.placements_equal + fidelity.segments_equal,
                         fidelity.placements + fidelity.segments),
        format_count(fidelity.placements_equal),
        format_count(fidelity.placements),
        format_count(fidelity.segments_equal),
        format_count(fidelity.segments));
    if (!fidelity.reason.empty()) {
        text += fmt::format("             first difference: {}\n", fidelity.reason);
    }
    return text;
}

const Diagnosis* first_oom(const DeviceAnalysis& device) {
    for (const Diagnosis& diagnosis : device.diagnoses) {
        if (diagnosis.trouble.outcome != Outcome::kRetryOk) {
            return &diagnosis;
        }
    }
    return nullptr;
}

std::string remedy_clause(const DeviceAnalysis& device) {
    const WhatIfRow* remedy = best_remedy(device);
    if (remedy == nullptr) {
        return device.settings.empty() ? "" : "No setting tried would have avoided it.";
    }
    return fmt::format("{} would have {}.",
                       remedy->candidate.name,
                       remedy->ooms() == 0 ? "served it" : "served more of it");
}

// The sentence that the whole report exists for.
std::string headline(const DeviceAnalysis& device, const Terminal& terminal) {
    if (const Diagnosis* oom = first_oom(device)) {
        const std::string remedy = remedy_clause(device);
        return terminal.styled(
                   Style::kRed,
                   verdict_sentence(oom->verdict, oom->trouble.outcome)) +
               (remedy.empty() ? "" : " " + remedy) + "\n";
    }
    const MemorySummary& run = device.recorded;
    const std::uint64_t unused = run.peak_reserved - std::min(run.peak_reserved, run.peak_allocated);
    std::string text = fmt::format(
        "No out-of-memory. Peak reserved {} for a peak of {} allocated: {} ({}) was never needed "
        "at once.",
        format_bytes(run.peak_reserved),
        format_bytes(run.peak_allocated),
        format_bytes(unused),
        percent(unused, run.peak_reserved));
    if (run.retries != 0) {
        text += fmt::format(" {} retries.", format_count(run.retries));
    }
    if (const WhatIfRow* remedy = best_remedy(device)) {
        text += fmt::format(
            " {} would have reserved {}.",
            remedy->candidate.name,
            format_bytes(remedy->result.statistics.reserved.peak));
    }
    return terminal.styled(Style::kBold, text) + "\n";
}

std::string verdict_lines(const Analysis& analysis,
                          const DeviceAnalysis& device,
                          const Terminal& terminal) {
    const Diagnosis* oom = first_oom(device);
    if (oom == nullptr) {
        return "";
    }
    const Verdict& verdict = oom->verdict;
    const Event& event = analysis.timeline.events[oom->trouble.event];
    std::string text = fmt::format("  verdict    {}: {}\n",
                                   terminal.styled(Style::kBold, verdict.id),
                                   verdict_explanation(verdict));
    text += fmt::format(
        "  state      {} allocated, {} reserved; free: {} in the pool (largest hole {}), {} on the "
        "device\n",
        format_bytes(verdict.allocated_bytes),
        format_bytes(verdict.reserved_bytes),
        format_bytes(verdict.free_bytes),
        format_bytes(verdict.largest_hole_bytes),
        format_bytes(verdict.device_free_bytes));
    text += fmt::format("  asked by   {} at {}\n",
                        printable(analysis.symbols->describe(event.origin)),
                        format_duration(event.time_ns));
    return text;
}

std::string waste_bar(const WasteSplit& waste, const Terminal& terminal) {
    if (!terminal.colors() || waste.reserved == 0) {
        return "";
    }
    constexpr std::size_t kWidth = 60;
    const std::array<std::pair<std::uint64_t, Style>, 4> parts = {{
        {waste.requested, Style::kGreen},
        {waste.rounding + waste.slack + waste.pending, Style::kYellow},
        {waste.inactive_split, Style::kOrange},
        {waste.releasable, Style::kDim},
    }};
    std::string bar = "             ";
    std::uint64_t before = 0;
    for (const auto& [bytes, style] : parts) {
        const std::size_t from = before * kWidth / waste.reserved;
        before += bytes;
        std::string cells;
        for (std::size_t i = from; i < before * kWidth / waste.reserved; ++i) {
            cells += "█";
        }
        bar += terminal.styled(style, cells);
    }
    return bar + "\n";
}

std::string memory_lines(const DeviceAnalysis& device, const Terminal& terminal) {
    const MemorySummary& run = device.recorded;
    const WasteSplit& waste = run.waste_at_peak;
    std::string text = fmt::format(
        "  peaks      requested {}, allocated {}, active {}, reserved {} of {}\n",
        format_bytes(run.peak_requested),
        format_bytes(run.peak_allocated),
        format_bytes(run.peak_active),
        format_bytes(run.peak_reserved),
        device.capacity_known ? format_bytes(device.capacity_bytes) : "an unknown capacity");
    text += fmt::format(
        "  waste      at peak reserved: rounding {}, slack {}, pending {}, releasable {}, "
        "inactive split {}\n",
        format_bytes(waste.rounding),
        format_bytes(waste.slack),
        format_bytes(waste.pending),
        format_bytes(waste.releasable),
        format_bytes(waste.inactive_split));
    text += waste_bar(waste, terminal);
    text += fmt::format("  driver     {} cudaMallocs, {} cudaFrees, {} retries",
                        format_count(run.segments_allocated),
                        format_count(run.segments_freed),
                        format_count(run.retries));
    if (device.driver_time_ns != 0) {
        text += fmt::format(", {} in driver calls", format_duration(device.driver_time_ns));
    }
    return text + "\n";
}

std::string sets_text(double sets) {
    if (sets < 1e6) {
        return format_count(static_cast<std::uint64_t>(sets));
    }
    return fmt::format("{:.1e}", sets);
}

std::string cheapest_line(const Diagnosis& diagnosis) {
    const CheapestSet& set = diagnosis.cheapest;
    if (set.kind == CheapestSet::Kind::kNone) {
        return "";
    }
    const std::string where = set.kind == CheapestSet::Kind::kSegments
                                  ? fmt::format("in {} segments", set.segments)
                                  : std::string("side by side in one segment");
    const std::string others =
        set.approximate ? "an estimate: too many segments to solve exactly"
        : set.equally_cheap_sets > 1
            ? fmt::format("{} sets are equally cheap", sets_text(set.equally_cheap_sets))
            : "no other set is as cheap";
    return fmt::format("  cheapest   without {} of live blocks ({} {}) the request fits; {}\n",
                       format_bytes(set.bytes_to_free),
                       set.blocks.size(),
                       where,
                       others);
}

std::string culprit_lines(const Analysis& analysis,
                          const DeviceAnalysis& device,
                          const Limits& limits,
                          const Terminal& terminal) {
    const Diagnosis* oom = first_oom(device);
    const Diagnosis* shown = oom != nullptr ? oom : device.peak ? &*device.peak : nullptr;
    if (shown == nullptr || limits.culprits == 0) {
        return "";
    }
    const std::vector<CulpritGroup> groups = group_culprits(analysis, *shown, false);
    if (groups.empty()) {
        return "";
    }
    std::string text = terminal.styled(Style::kBold,
                                       oom != nullptr ? "Who pins the holes"
                                                      : "Who pins the holes at peak reserved") +
                       "\n";
    for (std::size_t i = 0; i < std::min(limits.culprits, groups.size()); ++i) {
        text += fmt::format("  {:>9} held open by {:>9} in {:>6} blocks  {}\n",
                            format_bytes(groups[i].held_open_bytes),
                            format_bytes(groups[i].live_bytes),
                            format_count(groups[i].blocks),
                            printable(shorten(groups[i].label, terminal.width() - 49)));
    }
    if (groups.size() > limits.culprits) {
        text += fmt::format("  and {} more places\n", groups.size() - limits.culprits);
    }
    return text + cheapest_line(*shown);
}

// Where the recorded settings stop to fit. Feasibility is not monotone: both ends are named.
std::string capacity_line(const DeviceAnalysis& device) {
    const WhatIfRow* least_fitting = nullptr;
    const WhatIfRow* largest_failing = nullptr;
    for (const WhatIfRow& row : device.capacities) {
        if (row.ooms() != 0) {
            largest_failing = &row;
        } else if (least_fitting == nullptr) {
            least_fitting = &row;
        }
    }
    std::string text;
    if (least_fitting != nullptr) {
        text += fmt::format("fits {} ({})",
                            least_fitting->candidate.name,
                            row_class_name(least_fitting->row_class));
    }
    if (largest_failing != nullptr) {
        text += fmt::format("{}runs out of memory on {}",
                            text.empty() ? "" : ", ",
                            largest_failing->candidate.name);
    }
    return text.empty() ? "" : "  other cards, same settings: " + text + "\n";
}

std::string whatif_lines(const DeviceAnalysis& device,
                         const Limits& limits,
                         const Terminal& terminal) {
    if (device.settings.empty()) {
        return "";
    }
    std::string text =
        terminal.styled(Style::kBold, "What if (the same requests, replayed)") + "\n" +
        whatif_table(device.settings, limits.settings, terminal);
    return text + (limits.capacities ? capacity_line(device) : "");
}

std::string list_lines(const char* title,
                       const std::vector<std::string>& lines,
                       std::size_t limit,
                       const Terminal& terminal) {
    if (lines.empty() || limit == 0) {
        return "";
    }
    std::string text = terminal.styled(Style::kBold, title) + "\n";
    for (std::size_t i = 0; i < std::min(limit, lines.size()); ++i) {
        text += "  - " + lines[i] + "\n";
    }
    if (lines.size() > limit) {
        text += fmt::format("  and {} more (--json has all)\n", lines.size() - limit);
    }
    return text;
}

std::string device_text(const Analysis& analysis,
                        const DeviceAnalysis& device,
                        const Limits& limits,
                        const Terminal& terminal) {
    std::string text = headline(device, terminal);
    text += verdict_lines(analysis, device, terminal);
    text += fidelity_line(device);
    text += fmt::format("  device {}   {}{}, settings: {}\n",
                        device.device,
                        printable(device.name),
                        device.virtual_gpu ? " (virtual: kernels computed nothing)" : "",
                        device.config.empty() ? "default" : device.config);
    text += memory_lines(device, terminal);
    text += culprit_lines(analysis, device, limits, terminal);
    return text + whatif_lines(device, limits, terminal);
}

std::string next_lines(const Analysis& analysis, const Terminal& terminal) {
    return terminal.styled(Style::kBold, "Next") + fmt::format(
        "\n  fraganalyze {} --html timeline.html\n", shell_quoted(analysis.timeline.path));
}

std::string assemble(const Analysis& analysis, const Limits& limits, const Terminal& terminal) {
    std::string text = first_line(analysis, terminal);
    if (analysis.devices.empty()) {
        text += analysis.timeline.damage.bytes_unreadable == 0
                    ? "No GPU memory was allocated in this process.\n"
                    : "Nothing that can still be read says anything about GPU memory.\n";
    }
    // What went wrong comes first, whichever device it was on.
    for (const bool failed : {true, false}) {
        for (const DeviceAnalysis& device : analysis.devices) {
            if ((first_oom(device) != nullptr) == failed) {
                text += device_text(analysis, device, limits, terminal);
            }
        }
    }
    text += list_lines("Assumptions", analysis.assumptions, limits.assumptions, terminal);
    text += list_lines("Warnings", analysis.warnings, limits.assumptions, terminal);
    return text + next_lines(analysis, terminal);
}

}  // namespace

std::string report_text(const Analysis& analysis, const Terminal& terminal) {
    return assemble(analysis, Limits{}, terminal);
}

std::string summary_text(const Analysis& analysis, const Terminal& terminal) {
    constexpr std::size_t kMaxLines = 24;  // and one line for what the launcher adds
    const Limits limits{.culprits = 2, .settings = 2, .capacities = false, .assumptions = 1};
    std::string text = assemble(analysis, limits, terminal);
    if (static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) <= kMaxLines) {
        return text;
    }
    // Many devices: what is cut is said, and the next command is kept.
    const std::string next = next_lines(analysis, terminal);
    std::size_t end = 0;
    for (std::size_t line = 0; line + 3 < kMaxLines; ++line) {
        end = text.find('\n', end) + 1;
    }
    return text.substr(0, end) + "...\n" + next;
}

}  // namespace fragtrace::analyzer
