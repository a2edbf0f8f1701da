#include "analyzer/report/page/page_report.h"

#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/model/unknown_segments.h"
#include "analyzer/report/text/text_parts.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kMostRows = 100;  // of a table; the report's JSON has all rows

}  // namespace

void add_report(const Analysis& analysis,
                const DeviceAnalysis& device,
                PageStacks* stacks,
                PageDevice* page) {
    for (const Advice& advice : device.advice) {
        page->advice.push_back(
            {.name = advice.name, .effect = advice_text(advice), .settings = !advice.less_memory});
    }
    page->advice_heading = advice_heading(device);
    const Growth& growth = device.held.growth;
    for (const GrowingLine& line : growth.places) {
        const auto grown = static_cast<std::uint64_t>(line.place.held.bytes);
        page->growing.push_back(
            {.stack = stacks->node_of(line.place.held.origin),
             .held = line.place.held,
             .category = category_known(line.place) ? std::string(shown_category(line.place))
                                                    : std::string(),
             .bytes_per_step = grown / std::max<std::size_t>(growth.last - growth.first, 1),
             .live_bytes = line.bytes_at_last});
    }
    if (!growth.places.empty()) {
        page->growing_when = fmt::format("from step {} to step {}", growth.first, growth.last);
    }
    page->growth = growth_lines(device);
    page->near_miss = near_miss_lines(analysis, device);
    page->holes_heading = holes_heading(device);
    std::vector<HoleRow> holes = hole_rows(analysis, device);
    if (holes.size() > kMostRows) {
        page->holes_more =
            fmt::format("and {} more sizes (--json has all holes)", holes.size() - kMostRows);
        holes.resize(kMostRows);
    }
    for (HoleRow& row : holes) {
        page->holes.push_back(
            {.bytes = row.bytes, .count = row.count, .serves = std::move(row.serves)});
    }
    const auto add = [page](std::vector<ReportLine> lines) {
        std::move(lines.begin(), lines.end(), std::back_inserter(page->lines));
    };
    add(device_lines(analysis, device));
    add(tried_lines(device));
    add(fidelity_lines(analysis, device));
    add(card_lines(device));
    add(private_pool_lines(device));
    add(step_lines(device));
    add(forecast_lines(device));
    if (segments_known(device.recorded) && !device.state_only) {
        add(asleep_lines(device));
        add(past_pool_lines(device.recorded));
        add(driver_lines(device));
    }
}

void add_process_report(const Analysis& analysis, PageProcess* process) {
    const auto add = [process](std::vector<ReportLine> lines) {
        std::move(lines.begin(), lines.end(), std::back_inserter(process->lines));
    };
    if (analysis.devices.empty()) {
        add_line(&process->lines, "memory", no_device_text(analysis));
    }
    if (analysis.timeline.pid != 0) {
        add_line(&process->lines, "process", process_text(analysis.timeline));
    }
    add(part_lines(analysis.timeline));
    FailedCalls failed = failed_calls(analysis);
    for (FailedCall& call : failed.shown) {
        add_line(&process->lines, "failed", std::move(call.sentence));
        add(std::move(call.lines));
    }
    add_line(&process->lines, "failed", failed.more);
    add(call_lines(analysis));
    add(side_lines(analysis));
    const bool reserved_known = shows_reserved(analysis.timeline.facts);
    const auto if_known = [reserved_known](std::uint64_t value) {
        return reserved_known ? value : kPageUnknown;
    };
    std::size_t more = 0;
    for (const PhaseTotals& phase : analysis.run.phases) {
        if (!phase.library.empty()) {
            continue;
        }
        if (process->phases.size() == kMostRows) {
            ++more;
            continue;
        }
        process->phases.push_back({.name = phase.name,
                                   .count = phase.count,
                                   .time_ns = phase.time_ns,
                                   .peak_allocated = phase.figures.peak_allocated,
                                   .peak_reserved = if_known(phase.figures.peak_reserved),
                                   .change_bytes = phase.figures.left_bytes,
                                   .driver_allocs = if_known(phase.driver_allocs),
                                   .retries = if_known(phase.retries)});
    }
    if (more != 0) {
        process->phases_more = fmt::format("and {} more (--json has all)", more);
    }
}

}  // namespace fragtrace::analyzer
