#include "analyzer/report/text/text.h"

#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/report/text/conclusion_text.h"
#include "analyzer/report/text/first_lines.h"
#include "analyzer/report/text/text_parts.h"
#include "analyzer/report/text/text_source.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kCulpritRows = 4;
constexpr std::size_t kSettingRows = 6;
constexpr std::size_t kRemedyRows = 5;
constexpr std::size_t kAllLines = static_cast<std::size_t>(-1);

struct Limits {
    std::size_t culprits = kCulpritRows;
    std::size_t settings = kSettingRows;
    bool capacities = true;
    std::size_t assumptions = 4;
    bool run = true;
};

std::string sets_text(double sets) {
    if (sets < 1e6) {
        return format_count(static_cast<std::uint64_t>(sets));
    }
    return fmt::format("{:.1e}", sets);
}

}  // namespace

std::string cheapest_text(const Diagnosis& diagnosis) {
    const CheapestSet& set = diagnosis.cheapest;
    // Say nothing if the free memory would be enough and another reason makes it unusable.
    if (set.kind == CheapestSet::Kind::kNone || set.bytes_to_free == 0) {
        return "";
    }
    const std::string segments = format_counted(set.segments, "segment", "segments");
    const std::string pages = format_counted(set.pages, "page", "pages");
    const std::string where = set.kind == CheapestSet::Kind::kWindow
                                  ? std::string("side by side in one segment")
                              : set.pages == 0    ? fmt::format("in {}", segments)
                              : set.segments == 0 ? fmt::format("in {}", pages)
                                                  : fmt::format("in {} and {}", pages, segments);
    const std::string others =
        set.approximate ? "an estimate: too many segments or pages to solve exactly"
        : set.equally_cheap_sets > 1
            ? fmt::format("{} equivalent choices", sets_text(set.equally_cheap_sets))
            : "no equivalent choice";
    return fmt::format("the request fits without {} of live blocks ({} {}); {}",
                       format_bytes(set.bytes_to_free),
                       set.blocks.size(),
                       where,
                       others);
}

std::string outlived_text(const Analysis& analysis,
                          const DeviceAnalysis& device,
                          const CulpritGroup& group,
                          const Diagnosis& diagnosis) {
    const Outlived outlived = outlived_of(analysis, group, diagnosis);
    const char* const which = group.held.blocks == 1 ? "" : "the oldest ";
    if (outlived.phase == PhaseIndex::kNone && group.oldest != kNoEvent) {
        const std::size_t birth = device.held.iterations.of(group.oldest);
        const std::size_t now = device.held.iterations.of(diagnosis.trouble.event);
        return now <= birth ? ""
               : birth == 0 ? fmt::format(", {}allocated before the first step", which)
                            : fmt::format(", {}allocated in step {}, still alive {} later",
                                          which,
                                          format_count(birth),
                                          format_counted(now - birth, "step", "steps"));
    }
    if (!outlived.over) {
        return "";
    }
    if (outlived.again != 0) {
        return fmt::format(", still alive after {} of that phase",
                           format_counted(outlived.again, "more run", "more runs"));
    }
    return outlived.phases_since == 0
               ? std::string(", still alive after it")
               : fmt::format(", still alive {} later",
                             format_counted(outlived.phases_since, "phase", "phases"));
}

namespace {

std::string culprit_lines(const Analysis& analysis,
                          const DeviceAnalysis& device,
                          const Limits& limits,
                          const Terminal& terminal) {
    const Diagnosis* oom = reported_oom(device);
    const Diagnosis* shown = oom != nullptr ? oom : device.peak ? &*device.peak : nullptr;
    if (shown == nullptr || limits.culprits == 0) {
        return "";
    }
    const std::vector<CulpritGroup> groups = group_culprits(analysis, *shown, false);
    if (groups.empty()) {
        return "";
    }
    std::string text =
        terminal.styled(Style::kBold,
                        oom != nullptr || device.state_only
                            ? "Which allocations block free memory"
                            : "Which allocations block free memory at peak reserved") +
        "\n";
    for (std::size_t i = 0; i < std::min(limits.culprits, groups.size()); ++i) {
        text += fmt::format("  {:>9} blocked by {:>9} in {:>13}  {}{}\n",
                            format_bytes(groups[i].held_open_bytes),
                            format_bytes(groups[i].held.bytes),
                            format_counted(groups[i].held.blocks, "block", "blocks"),
                            printable(groups[i].held.label),
                            phase_suffix(analysis, groups[i].oldest) +
                                outlived_text(analysis, device, groups[i], *shown));
    }
    if (groups.size() > limits.culprits) {
        text += fmt::format(
            "  and {}\n",
            format_counted(groups.size() - limits.culprits, "more place", "more places"));
    }
    const std::string cheapest = cheapest_text(*shown);
    return text + (cheapest.empty() ? "" : "  cheapest   " + cheapest + "\n");
}

// The capacity from which on the recorded settings no longer fit. A smaller card can fit where a
// larger one fails, so both sides are printed.
std::string capacity_line(const DeviceAnalysis& device) {
    std::string text;
    if (const WhatIfRow* fits = smallest_fitting(device)) {
        const std::string follows = what_follows(*fits);
        text += fmt::format("{} {} ({}){}{}",
                            fits->candidate.name,
                            fits->gets_past() ? "gets past the out-of-memory" : "fits",
                            class_in_sentence(*fits),
                            follows.empty() ? "" : "; ",
                            follows);
    }
    if (const WhatIfRow* fails = largest_failing(device)) {
        text +=
            fmt::format("{}{} runs out of memory", text.empty() ? "" : "; ", fails->candidate.name);
    }
    return text.empty() ? "" : "  other cards, same settings and requests: " + text + "\n";
}

std::string whatif_lines(const DeviceAnalysis& device,
                         const Limits& limits,
                         const Terminal& terminal) {
    if (!device.no_whatif.empty()) {
        return terminal.styled(Style::kBold, "What if") + "\n  not replayed: " + device.no_whatif +
               "\n";
    }
    if (device.settings.empty()) {
        return "";
    }
    const char* const title = segments_known(device.recorded)
                                  ? "What if (the same requests, replayed)"
                                  : "What if PyTorch's pool had served these requests (replayed)";
    std::string text =
        terminal.styled(Style::kBold, title) + "\n" +
        whatif_table(device, device.settings, limits.settings, terminal, !limits.run);
    text += limits.capacities ? capacity_line(device) : "";
    return text + remedies_table(device, kRemedyRows, terminal) + advice_lines(device, terminal);
}

std::string list_lines(const std::string& title,
                       const std::vector<std::string>& lines,
                       std::size_t limit,
                       const Terminal& terminal) {
    if (lines.empty() || limit == 0) {
        return "";
    }
    std::string text = terminal.styled(Style::kBold, title) + "\n";
    for (std::size_t i = 0; i < std::min(limit, lines.size()); ++i) {
        text += "  - " + printable(lines[i]) + "\n";
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
    std::string text = headline(analysis, device, terminal);
    text += verdict_line(device, terminal);
    text += conclusion_lines(analysis, device, terminal);
    text += state_lines(analysis, device);
    text += limits.run ? printed(forecast_lines(device)) : "";
    text += holder_lines(analysis, device, !limits.run);
    text += printed(growth_lines(device));
    text += printed(fidelity_lines(analysis, device));
    text += printed(device_lines(analysis, device));
    text += limits.run ? printed(card_lines(device)) : "";
    text += memory_lines(device, terminal);
    text += hole_lines(analysis, device, limits.culprits, terminal);
    text += culprit_lines(analysis, device, limits, terminal);
    text += whatif_lines(device, limits, terminal);
    return text +
           (limits.run ? bounds_table(device, terminal) + class_lines(device, terminal) : "");
}

std::string next_lines(const Analysis& analysis, const Terminal& terminal) {
    return terminal.styled(Style::kBold, "Next") +
           fmt::format("\n  fraganalyze {} --html timeline.html\n",
                       shell_quoted(analysis.timeline.path));
}

std::vector<const DeviceAnalysis*> failures_first(const Analysis& analysis) {
    std::vector<const DeviceAnalysis*> devices;
    for (const bool failed : {true, false}) {
        for (const DeviceAnalysis& device : analysis.devices) {
            if ((reported_oom(device) != nullptr) == failed) {
                devices.push_back(&device);
            }
        }
    }
    return devices;
}

std::string assemble(const Analysis& analysis, const Limits& limits, const Terminal& terminal) {
    std::string text = first_line(analysis, terminal) + printed(part_lines(analysis.timeline));
    text += analysis.devices.empty() ? no_device_text(analysis) + "\n" : "";
    text += failed_call_lines(analysis, terminal);
    for (const DeviceAnalysis* device : failures_first(analysis)) {
        text += device_text(analysis, *device, limits, terminal);
    }
    text += program_pool_lines(analysis, !limits.run, terminal);
    if (limits.run) {
        const std::string lines = printed(call_lines(analysis)) + printed(side_lines(analysis));
        text += lines.empty() ? "" : terminal.styled(Style::kBold, "Process") + "\n" + lines;
        text += phase_lines(analysis, terminal);
    }
    text += list_lines(fmt::format("Not in this {}", printable(analysis.timeline.fact("import"))),
                       missing_in_import(analysis.timeline),
                       limits.run ? kAllLines : limits.assumptions,
                       terminal);
    text += list_lines("Assumptions", analysis.assumptions, limits.assumptions, terminal);
    return text +
           list_lines("Warnings", warnings_with_stacks(analysis), limits.assumptions, terminal);
}

}  // namespace

std::string no_device_text(const Analysis& analysis) {
    const RunMetrics& run = analysis.run;
    if (const std::string import = analysis.timeline.fact("import"); !import.empty()) {
        return fmt::format("This {} contains no request for device memory.", printable(import));
    }
    if (analysis.timeline.damage.bytes_unreadable != 0) {
        return "The readable part of the trace has no GPU memory.";
    }
    if (run.managed.allocations != 0) {
        return fmt::format(
            "This process allocated no device memory, only managed memory: at most {}, which moves "
            "to the GPU when it is used.",
            format_bytes(run.managed.peak_bytes));
    }
    if (run.imports != 0) {
        return fmt::format(
            "This process allocated no GPU memory; it imported memory of other processes {}.",
            format_counted(run.imports, "time", "times"));
    }
    return "This process allocated no GPU memory.";
}

std::string report_text(const Analysis& analysis, const Terminal& terminal, bool has_page) {
    return assemble(analysis, Limits{}, terminal) +
           (has_page ? std::string() : next_lines(analysis, terminal));
}

std::string first_lines(const Analysis& analysis, const Terminal& terminal) {
    std::string text = analysis.devices.empty() ? no_device_text(analysis) + "\n" : "";
    text += failed_call_lines(analysis, terminal);
    for (const DeviceAnalysis* device : failures_first(analysis)) {
        text +=
            headline(analysis, *device, terminal) + conclusion_lines(analysis, *device, terminal);
    }
    return text;
}

std::string summary_text(const Analysis& analysis, const Terminal& terminal, bool has_page) {
    constexpr std::size_t kMaxLines = 24;  // plus one line of the launcher
    const Limits limits{
        .culprits = 2, .settings = 2, .capacities = false, .assumptions = 1, .run = false};
    const std::string text = assemble(analysis, limits, terminal);
    const std::string next = has_page ? std::string() : next_lines(analysis, terminal);
    const auto lines = [](const std::string& of) {
        return static_cast<std::size_t>(std::count(of.begin(), of.end(), '\n'));
    };
    if (lines(text) + lines(next) <= kMaxLines) {
        return text + next;
    }
    // With many devices, say that lines are cut and keep the next command.
    std::size_t end = 0;
    for (std::size_t line = 0; line + lines(next) + 1 < kMaxLines; ++line) {
        end = text.find('\n', end) + 1;
    }
    return text.substr(0, end) + "...\n" + next;
}

}  // namespace fragtrace::analyzer
