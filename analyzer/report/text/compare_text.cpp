#include "analyzer/report/compare_report.h"
#include "analyzer/report/text/compare_figures.h"
#include "analyzer/report/text/compare_rows.h"
#include "analyzer/report/text/text_parts.h"
#include "analyzer/report/text/text_source.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kLineRows = 8;
constexpr std::size_t kPhaseRows = 10;
constexpr std::size_t kSettingRows = 12;
constexpr std::size_t kValueWidth = 40;

std::string more_rows(std::size_t all, std::size_t shown) {
    return all > shown ? fmt::format("  and {} more (--json has all)\n", all - shown) : "";
}

std::string figures(const DeviceComparison& device) {
    std::string text =
        fmt::format("gpu{:<24} {:>12} {:>12}   difference\n", device.device, "A", "B");
    for (const CompareFigure& row : compare_figures(device)) {
        std::string line = fmt::format("  {:<25} {:>12} {:>12}   {}",
                                       (row.part ? "  " : "") + row.name,
                                       row.a,
                                       row.b,
                                       row.difference);
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    }
    return text;
}

std::string side(const std::optional<HeldBy>& held) {
    return held ? format_bytes(held->bytes) : "not listed";
}

std::string line_rows(std::string_view title,
                      const std::vector<LineChange>& changes,
                      const Terminal& terminal) {
    if (changes.empty()) {
        return "";
    }
    std::string text = terminal.styled(Style::kBold, title) + "\n";
    for (std::size_t i = 0; i < std::min(kLineRows, changes.size()); ++i) {
        const LineChange& change = changes[i];
        text += fmt::format(
            "  {:>11}  {:>10} -> {:<10} {}{}\n",
            change.a && change.b ? format_bytes_difference(change.a->bytes, change.b->bytes) : "?",
            side(change.a),
            side(change.b),
            printable(change.label()),
            !change.a || change.a->label == change.label()
                ? ""
                : fmt::format(" (in A {})", printable(change.a->label)));
    }
    return text + more_rows(changes.size(), kLineRows);
}

std::string device_text(const Comparison& comparison,
                        const DeviceComparison& device,
                        const Terminal& terminal) {
    if (!device.a || !device.b) {
        return fmt::format("gpu{}: {}\n", device.device, compare_headline(device));
    }
    std::string text = terminal.styled(Style::kBold, compare_headline(device)) + "\n";
    if (const std::string note = compare_state_note(device); !note.empty()) {
        text += note + "\n";
    }
    text += figures(device);
    text += line_rows("More memory at the peak in B", device.grew, terminal);
    text += line_rows("Less memory at the peak in B", device.shrank, terminal);
    text += line_rows(
        "Not comparable: the JSON lists only the lines with most memory", device.unknown, terminal);
    if (!comparison.a.has_holders || !comparison.b.has_holders) {
        const RunProfile& run = comparison.a.has_holders ? comparison.b : comparison.a;
        text += fmt::format("  {} {}\n",
                            shell_quoted(run.path),
                            run.source == RunProfile::Source::kJson
                                ? "does not list memory by line at the peak; use a trace, or the "
                                  "JSON of summarize"
                                : "was read without its peak, so its memory by line there is "
                                  "unknown");
    }
    return text;
}

std::string phase_rows(const Comparison& comparison, const Terminal& terminal) {
    const std::vector<ComparePhase> phases = different_phases(comparison);
    if (phases.empty()) {
        return comparison.phases.empty() ? "" : "Phases: equal in both\n";
    }
    constexpr const char* kRow = "  {:<28} {:>10} {:>22} {:>22} {:>20}\n";
    std::string text = terminal.styled(Style::kBold, "Phases that differ") + "\n";
    text += fmt::format(
        fmt::runtime(kRow), "phase", "count", "peak allocated", "peak reserved", "change");
    for (std::size_t i = 0; i < std::min(kPhaseRows, phases.size()); ++i) {
        const ComparePhase& phase = phases[i];
        const std::string name = shorten(phase.name, 28);
        text += phase.only_in.empty() ? fmt::format(fmt::runtime(kRow),
                                                    name,
                                                    phase.count,
                                                    phase.allocated,
                                                    phase.reserved,
                                                    phase.change)
                                      : fmt::format("  {:<28} only in {}\n", name, phase.only_in);
    }
    text += more_rows(phases.size(), kPhaseRows);
    if (const auto first = first_different_phase(comparison)) {
        text += "  " + first->text + "\n";
    }
    return text;
}

std::string sentences(const std::vector<ComparePlace>& places) {
    std::string text;
    for (const ComparePlace& place : places) {
        text += place.text + "\n";
    }
    return text;
}

std::string setting_rows(const Comparison& comparison, const Terminal& terminal) {
    const std::vector<CompareSetting> settings = different_settings(comparison, kValueWidth);
    if (settings.empty()) {
        return "";
    }
    std::string text = terminal.styled(Style::kBold, "Different settings") + "\n";
    for (std::size_t i = 0; i < std::min(kSettingRows, settings.size()); ++i) {
        const auto& [key, a, b] = settings[i];
        text += fmt::format("  {:<28} {} -> {}\n", key, a, b);
    }
    return text + more_rows(settings.size(), kSettingRows);
}

}  // namespace

std::string compare_text(const Comparison& comparison, const Terminal& terminal) {
    std::string text;
    for (const DeviceComparison& device : comparison.devices) {
        text += device_text(comparison, device, terminal);
    }
    if (comparison.devices.empty()) {
        text += "Neither run has device memory.\n";
    }
    text += phase_rows(comparison, terminal);
    text += sentences(compare_steps(comparison));
    text += sentences(different_requests(comparison));
    text += sentences(parts_read(comparison));
    text += setting_rows(comparison, terminal);
    return text +
           fmt::format("A  {}\nB  {}\n", compared_run(comparison.a), compared_run(comparison.b));
}

}  // namespace fragtrace::analyzer
