#include "analyzer/report/page/page_content.h"

#include "analyzer/analysis/memory_lives.h"
#include "analyzer/analysis/metrics/driver_bursts.h"
#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/analysis/metrics/side_memory.h"
#include "analyzer/analysis/whatif/reserved_curve.h"
#include "analyzer/analysis/whatif/sweep.h"
#include "analyzer/model/unknown_segments.h"
#include "analyzer/report/page/page_cards.h"
#include "analyzer/report/page/page_commands.h"
#include "analyzer/report/page/page_phases.h"
#include "analyzer/report/page/page_report.h"
#include "analyzer/report/page/page_stacks.h"
#include "analyzer/report/text/text.h"
#include "analyzer/report/text/text_parts.h"
#include "analyzer/report/text/text_source.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace fragtrace::analyzer {
namespace {

std::string base_name(const std::string& path) {
    return path.substr(path.find_last_of('/') + 1);
}

std::string title_of(const Timeline& timeline) {
    const std::string file = base_name(timeline.path);
    return file.substr(0, file.find('.'));
}

class DevicePage {
  public:
    DevicePage(const Analysis& analysis,
               const DeviceAnalysis& device,
               const SidesOverTime& sides,
               PageStacks* stacks)
        : analysis_(analysis), device_(device), stacks_(stacks) {
        page_.pinned = sides.pinned;
        page_.managed = sides.managed;
    }

    // Adds a note to `notes` for everything that the page cannot show.
    PageDevice build(std::vector<std::string>* notes) {
        page_.name = device_.name;
        page_.index = device_.device;
        page_.virtual_gpu = device_.virtual_gpu;
        page_.capacity_bytes = device_.capacity_known ? device_.capacity_bytes : kPageUnknown;
        page_.total_bytes = device_.capacity_known ? device_.total_bytes : kPageUnknown;
        page_.limit_bytes = device_.limit_bytes != 0 ? device_.limit_bytes : kPageUnknown;
        page_.end_ns =
            analysis_.timeline.events.empty() ? 0 : analysis_.timeline.events.back().time_ns;
        const BirthIndex blocks = add_memory();
        add_phases(analysis_.timeline, device_.held.iterations, &page_);
        add_bursts(notes);
        add_cards(analysis_, device_, blocks, stacks_, &page_);
        add_troubles();
        add_program_pools();
        std::stable_sort(
            page_.markers.begin(),
            page_.markers.end(),
            [](const PageMarker& a, const PageMarker& b) { return a.time_ns < b.time_ns; });
        add_whatif();
        add_totals();
        add_report(analysis_, device_, stacks_, &page_);
        return std::move(page_);
    }

  private:
    BirthIndex add_memory() {
        for (const std::uint64_t stream : device_.script.streams) {
            page_.streams.push_back(stream == 0 ? "default" : fmt::format("{:#x}", stream));
        }
        MemoryLives lives =
            memory_lives(analysis_.timeline, device_.device, [this](OriginId origin) {
                return stacks_->node_of(origin);
            });
        // A program may empty the cache in every step: neighbours share a marker.
        constexpr std::size_t kMostMarkers = 1000;
        const std::size_t shared = (lives.emptied_ns.size() + kMostMarkers - 1) / kMostMarkers;
        for (std::size_t i = 0; i < lives.emptied_ns.size(); i += shared) {
            const std::size_t count = std::min(shared, lives.emptied_ns.size() - i);
            page_.markers.push_back(
                {lives.emptied_ns[i],
                 PageMarkerKind::kEmptyCache,
                 count == 1 ? "empty_cache" : fmt::format("empty_cache, {} times", count)});
        }
        for (PoolLife& pool : lives.pools) {
            page_.pools.push_back({pool_name(pool.number), std::move(pool.changes_ns)});
        }
        add_categories();
        page_.blocks = std::move(lives.blocks);
        page_.segments = std::move(lives.segments);
        page_.others = std::move(lives.others);
        return std::move(lives.index);
    }

    // The page numbers its colours in this order, so those of the cards come first, with most bytes
    // first.
    void add_categories() {
        const auto number_of = [this](std::string_view name) {
            std::vector<std::string>& names = page_.categories;
            const auto found = std::find(names.begin(), names.end(), name);
            const auto number = static_cast<std::uint32_t>(found - names.begin());
            if (found == names.end()) {
                names.emplace_back(name);
            }
            return number;
        };
        for (const Holders& holders : device_.held.holders) {
            for (const ShownCategory& category : shown_categories(holders)) {
                if (category.name != category_name(Category::kOther)) {
                    number_of(category.name);
                }
            }
        }
        for (const CategoryOfStack& of : device_.held.stack_categories) {
            page_.stack_categories.push_back(
                {stacks_->node_of(of.origin), number_of(device_.held.category_names[of.name])});
        }
    }

    // Returns an empty name for the default pool.
    [[nodiscard]] std::string pool_name(std::uint32_t number) const {
        if (number == 0) {
            return "";
        }
        const auto known = analysis_.timeline.pools.find(number);
        const bool of_graph = known != analysis_.timeline.pools.end() && known->second.is_graph();
        return fmt::format("{} {}", of_graph ? "CUDA graph pool" : "private pool", number);
    }

    // The words before the name of the recorded settings: their replay may differ from the run.
    std::string recorded_words(const WhatIfRow& row) const {
        return !row.is_recorded ? ""
               : row.result.statistics.reserved.peak == device_.recorded.peak_reserved
                   ? "as recorded: "
               : reserved_known(device_.recorded)
                   ? fmt::format("recorded settings, replayed (the run reserved {}): ",
                                 format_bytes(device_.recorded.peak_reserved))
                   : "recorded settings, replayed: ";
    }

    void add_bursts(std::vector<std::string>* notes) {
        const Timeline& timeline = analysis_.timeline;
        const std::vector<DriverBurst> bursts = find_driver_bursts(timeline, device_.device);
        if (bursts.size() == kMostDriverBursts) {
            notes->push_back(
                fmt::format("device {}: the {} bursts of cudaMallocs with the most requests have a "
                            "marker; further bursts may have none",
                            device_.device,
                            kMostDriverBursts));
        }
        for (const DriverBurst& burst : bursts) {
            const std::uint64_t from_ns = timeline.events[burst.first].time_ns;
            const std::uint64_t to_ns = timeline.events[burst.last].time_ns;
            page_.markers.push_back({from_ns,
                                     PageMarkerKind::kDriverBurst,
                                     fmt::format("{} cudaMallocs or maps within {}, {} in all",
                                                 format_count(burst.requests),
                                                 format_duration(to_ns - from_ns),
                                                 format_bytes(burst.bytes))});
        }
    }

    // Adds markers for failed requests and retries that have no card.
    void add_troubles() {
        const EventTable& events = analysis_.timeline.events;
        for (const RecordedTrouble& trouble : device_.recorded_troubles) {
            const bool has_card = std::any_of(
                device_.diagnoses.begin(), device_.diagnoses.end(), [&](const Diagnosis& one) {
                    return one.trouble.event == trouble.event;
                });
            if (!has_card) {
                const Event& event = events[trouble.event];
                const bool size_known = event.size_bytes != kUnknown64;
                page_.markers.push_back(
                    {event.time_ns,
                     trouble.retry ? PageMarkerKind::kRetry : PageMarkerKind::kOom,
                     event.kind == EventKind::kCallOutOfMemory
                         ? fmt::format("{} failed because memory ran out",
                                       text_of(analysis_.timeline, event.size_bytes))
                         : fmt::format("{} when {} {} requested; not diagnosed",
                                       trouble.retry ? "retry" : "out of memory",
                                       size_known ? format_bytes(event.size_bytes)
                                                  : std::string("an unknown size"),
                                       size_known ? "were" : "was")});
            }
        }
    }

    // Adds markers for requests that pools of the program could not serve.
    void add_program_pools() {
        for (const ProgramPool& pool : analysis_.program_pools) {
            if (pool.memory != PoolMemory::kDevice || pool.device != device_.device) {
                continue;
            }
            for (const ProgramPoolMoment& moment : pool.failures) {
                const std::uint64_t size_bytes = moment.requested_bytes;
                page_.markers.push_back(
                    {analysis_.timeline.events[moment.event].time_ns,
                     PageMarkerKind::kOther,
                     fmt::format("the program's pool {} could not serve {}",
                                 printable(pool.name),
                                 size_bytes == kUnknown64 ? std::string("a request")
                                                          : format_bytes(size_bytes))});
            }
        }
    }

    // Adds the times of the curves' points.
    void add_curve_times() {
        const EventTable& events = analysis_.timeline.events;
        const EventIndex last = last_replayed_event(device_.script);
        for (std::size_t point = 0; point < kCurvePoints && !events.empty(); ++point) {
            const std::uint64_t event = ReservedCurve::begin_of(point, last);
            page_.curve_times_ns.push_back(
                events[std::min<std::uint64_t>(event, events.size() - 1)].time_ns);
        }
    }

    void add_whatif() {
        add_curve_times();
        page_.no_whatif = device_.no_whatif;
        page_.whatif_remarks = whatif_remarks(device_);
        page_.whatif_classes = class_explanations(device_);
        std::vector<const WhatIfRow*> rows = ranked_rows(device_);
        const std::size_t ranked = rows.size();
        for (const auto* list : {&device_.pools, &device_.bounds, &device_.capacities}) {
            for (const WhatIfRow& row : *list) {
                rows.push_back(&row);
            }
        }
        for (std::size_t at = 0; at < rows.size(); ++at) {
            const WhatIfRow& row = *rows[at];
            RunFigures run = summarize(row.result);
            run.ooms = row.ooms();
            PageWhatIf shown{
                .name = recorded_words(row) + row.candidate.name,
                .row_class = row.class_text(),
                .run = run,
                .usable = row.usable,
                .note = whatif_note(row),
                .as_run = row.is_recorded,
                .gets_past = row.gets_past(),
                .rest_fails = row.gets_past() && !row.rest_fits.value_or(true),
                .cost = row.is_recorded ? std::string() : cost_text(row),
                .commands = commands_of(analysis_, row, at < ranked ? at + 1 : 0),
                .reserved_curve = row.reserved_curve,
                .difference = difference_text(row, device_),
                .differs = divergence_text(row),
                .bound = std::any_of(device_.bounds.begin(),
                                     device_.bounds.end(),
                                     [&row](const auto& one) { return &one == &row; })};
            const auto place = row.is_recorded ? page_.whatif.begin() : page_.whatif.end();
            page_.whatif.insert(place, std::move(shown));
        }
    }

    void add_totals() {
        const RunFigures& run = device_.recorded;
        if (!segments_known(run)) {
            page_.totals = {
                {"peak requested", run.peak_requested},
                {"peak allocated", run.peak_allocated},
                {"peak active", kPageUnknown},
                {"peak reserved", run.peak_reserved},
                {"waste", kPageUnknown},
                {"cudaMallocs", kPageUnknown, false},
                {"retries", kPageUnknown, false},
                {"ooms",
                 run.ooms == 0 && !shows_failures(analysis_.timeline.facts) ? kPageUnknown
                                                                            : run.ooms,
                 false}};
            return;
        }
        const WasteSplit& waste = run.waste_at_peak;
        if (device_.state_only) {  // one moment has no peaks, and calls before it are unknown
            page_.totals = {{"requested", run.peak_requested},
                            {"allocated", run.peak_allocated},
                            {"active", run.peak_active},
                            {"reserved", run.peak_reserved},
                            {"rounding", waste.rounding},
                            {"slack", waste.slack},
                            {"pending", waste.pending},
                            {"releasable", waste.releasable},
                            {"inactive split", waste.inactive_split}};
            return;
        }
        page_.totals = {{"peak requested", run.peak_requested},
                        {"peak allocated", run.peak_allocated},
                        {"peak active", run.peak_active},
                        {"peak reserved", run.peak_reserved},
                        {"rounding", waste.rounding},
                        {"slack", waste.slack},
                        {"pending", waste.pending},
                        {"releasable", waste.releasable},
                        {"inactive split", waste.inactive_split},
                        {"cudaMallocs", run.segments_allocated, false},
                        {"cudaFrees", run.segments_freed, false},
                        {"retries", run.retries, false},
                        {"ooms", run.ooms, false}};
    }

    const Analysis& analysis_;
    const DeviceAnalysis& device_;
    PageStacks* stacks_;
    PageDevice page_;
};

// Notes about what the page cannot show of a device, or only in summary.
void add_device_notes(const DeviceAnalysis& device, std::vector<std::string>* notes) {
    const std::uint64_t troubles = device.recorded.ooms + device.recorded.retries;
    if (troubles > device.diagnoses.size()) {
        notes->push_back(fmt::format(
            "device {}: of {} failed requests and retries {} were diagnosed and have a card; {} "
            "have a marker",
            device.device,
            format_count(troubles),
            device.diagnoses.size(),
            troubles > kMostRecordedTroubles ? fmt::format("the first {}", kMostRecordedTroubles)
                                             : std::string("all")));
    }
    if (!segments_known(device.recorded)) {
        notes->push_back(
            fmt::format("device {}: reserved memory is unknown; the map shows each block alone, "
                        "and no holes between blocks are drawn as free memory",
                        device.device));
    }
    if (!device.capacity_known) {
        notes->push_back(
            fmt::format("device {}: the trace lacks the driver's figures, so the memory of the "
                        "context and other processes is unknown and not drawn",
                        device.device));
    }
}

}  // namespace

void PageContent::add(const Analysis& analysis) {
    const Timeline& timeline = analysis.timeline;
    PageProcess process;
    process.title = title_of(timeline);
    // An import has no process.
    process.process = timeline.pid == 0 ? std::string()
                      : timeline.rank < 0
                          ? fmt::format("pid {}", timeline.pid)
                          : fmt::format("pid {}, rank {}", timeline.pid, timeline.rank);
    process.command = timeline.fact("command_line");
    const std::string pools =
        program_pool_lines(analysis, false, Terminal(-1, ColorChoice::kNever));
    process.program_pools = pools.substr(std::min(pools.size(), pools.find('\n') + 1));
    add_process_report(analysis, &process);
    for (const DeviceAnalysis& device : analysis.devices) {
        add_device_notes(device, &process.notes);
    }
    stacks_.begin_process(analysis.symbols.get());
    const SidesOverTime sides = sides_over_time(timeline);
    // Failed devices first: the page opens with the first device.
    for (const bool failed : {true, false}) {
        for (const DeviceAnalysis& device : analysis.devices) {
            if ((device.recorded.ooms != 0) == failed) {
                data_->devices.push_back(
                    DevicePage(analysis, device, sides, &stacks_).build(&process.notes));
                data_->devices.back().process = data_->processes.size();
            }
        }
    }
    // Problems of the trace come first. They are known only after all stacks have been resolved.
    std::vector<std::string> notes = warnings_with_stacks(analysis);
    for (const std::string& sentence : missing_in_import(timeline)) {
        notes.push_back(fmt::format("not in this {}: {}", timeline.fact("import"), sentence));
    }
    notes.insert(notes.end(), analysis.assumptions.begin(), analysis.assumptions.end());
    process.notes.insert(process.notes.begin(), notes.begin(), notes.end());
    if (data_->class_words.empty()) {
        for (const auto& [word, meaning] : class_meanings()) {
            data_->class_words.push_back({word, meaning});
        }
    }
    data_->processes.push_back(std::move(process));
}

PageData page_content(const Analysis& analysis) {
    PageData data;
    PageContent content(&data);
    content.add(analysis);
    data.title = data.processes.front().title;
    return data;
}

}  // namespace fragtrace::analyzer
