#include "analyzer/report/page_content.h"

#include "analyzer/report/page_memory.h"
#include "analyzer/report/page_stacks.h"
#include "analyzer/report/text.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>

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
    DevicePage(const Analysis& analysis, const DeviceAnalysis& device, PageStacks* stacks)
        : analysis_(analysis), device_(device), stacks_(stacks) {}

    PageDevice build() {
        page_.name = device_.name;
        page_.index = device_.device;
        page_.virtual_gpu = device_.virtual_gpu;
        page_.capacity_bytes = device_.capacity_known ? device_.capacity_bytes : kPageUnknown;
        page_.end_ns =
            analysis_.timeline.events.empty() ? 0 : analysis_.timeline.events.back().time_ns;
        blocks_ = add_memory(analysis_.timeline, device_.script, stacks_, &page_);
        for (const Diagnosis& diagnosis : device_.diagnoses) {
            add_trouble(diagnosis);
        }
        const bool ran_out =
            std::any_of(page_.cards.begin(), page_.cards.end(), [](const PageCard& card) {
                return card.kind == PageCardKind::kOom;
            });
        if (!ran_out && device_.peak) {
            add_peak(*device_.peak);
        }
        std::stable_sort(
            page_.cards.begin(), page_.cards.end(), [](const PageCard& a, const PageCard& b) {
                return a.time_ns < b.time_ns;
            });
        std::stable_sort(
            page_.markers.begin(),
            page_.markers.end(),
            [](const PageMarker& a, const PageMarker& b) { return a.time_ns < b.time_ns; });
        add_whatif();
        add_totals();
        return std::move(page_);
    }

  private:
    [[nodiscard]] Event event_of(const Diagnosis& diagnosis) const {
        return analysis_.timeline.events[diagnosis.trouble.event];
    }

    PageCard card_of(const Diagnosis& diagnosis) {
        const Event& event = event_of(diagnosis);
        PageCard card;
        card.time_ns = event.time_ns;
        card.stack = stacks_->node_of(event.origin);
        card.assumptions = analysis_.assumptions;
        for (const CulpritGroup& group : group_culprits(analysis_, diagnosis, false)) {
            card.culprits.push_back(culprit_of(group, event.time_ns));
        }
        return card;
    }

    PageCulprit culprit_of(const CulpritGroup& group, std::uint64_t now_ns) {
        PageCulprit row{.stack = stacks_->node_of(group.origin),
                        .label = group.label,
                        .held_open_bytes = group.held_open_bytes,
                        .live_bytes = group.live_bytes,
                        .block_count = group.blocks,
                        .age = "oldest " + format_duration(now_ns - group.oldest_ns),
                        .blocks = {}};
        for (const EventIndex born : group.pinning) {
            if (const auto block = blocks_.find(born)) {
                row.blocks.push_back(*block);
            }
        }
        return row;
    }

    void add_trouble(const Diagnosis& diagnosis) {
        const Verdict& verdict = diagnosis.verdict;
        const bool retry = diagnosis.trouble.outcome == Outcome::kRetryOk;
        PageCard card = card_of(diagnosis);
        card.kind = retry ? PageCardKind::kRetry : PageCardKind::kOom;
        card.heading = retry ? "Retry: the pool had to give its cache back"
                       : verdict.requester == "library"
                           ? "A library found no memory beside the pool"
                       : verdict.despite_free_memory() ? "The memory was there, but in pieces"
                                                       : "More was needed than there was";
        card.sentence = verdict_sentence(verdict, diagnosis.trouble.outcome);
        if (const WhatIfRow* remedy = best_remedy(device_);
            remedy != nullptr && !retry && verdict.requester != "library") {
            card.sentence += fmt::format(" {} would have served it.", remedy->candidate.name);
        }
        card.verdict = verdict.id;
        card.requested_bytes = verdict.requested_bytes;
        card.free_bytes = verdict.free_bytes;
        card.largest_free_bytes = verdict.largest_hole_bytes;
        card.device_free_bytes = verdict.device_free_bytes;
        card.details.push_back(verdict_explanation(verdict));
        if (diagnosis.cheapest.kind != CheapestSet::Kind::kNone) {
            card.details.push_back(
                fmt::format("Without {} of live blocks ({} blocks) the request fits; equally cheap "
                            "sets: {:.0f}.",
                            format_bytes(diagnosis.cheapest.bytes_to_free),
                            diagnosis.cheapest.blocks.size(),
                            diagnosis.cheapest.equally_cheap_sets));
        }
        page_.markers.push_back(
            {card.time_ns, retry ? PageMarkerKind::kRetry : PageMarkerKind::kOom, card.sentence});
        page_.cards.push_back(std::move(card));
    }

    void add_peak(const Diagnosis& peak) {
        const MemorySummary& run = device_.recorded;
        PageCard card = card_of(peak);
        card.kind = PageCardKind::kWaste;
        card.heading = "No out-of-memory: what the cache holds at its peak";
        card.sentence = fmt::format(
            "{} reserved at the peak, {} ever allocated at once. Of what is free then, {} is held "
            "in holes by live blocks, {} could go back to the driver.",
            format_bytes(run.peak_reserved),
            format_bytes(run.peak_allocated),
            format_bytes(run.waste_at_peak.inactive_split),
            format_bytes(run.waste_at_peak.releasable));
        card.verdict = "waste";
        card.free_bytes = run.waste_at_peak.inactive_split;
        card.device_free_bytes = peak.verdict.device_free_bytes;
        if (const WhatIfRow* remedy = best_remedy(device_)) {
            card.details.push_back(
                fmt::format("{} would have reserved {} (replayed).",
                            remedy->candidate.name,
                            format_bytes(remedy->result.statistics.reserved.peak)));
        }
        page_.cards.push_back(std::move(card));
    }

    void add_whatif() {
        for (const auto* rows : {&device_.settings,
                                 &device_.remedies,
                                 &device_.pools,
                                 &device_.bounds,
                                 &device_.capacities}) {
            for (const WhatIfRow& row : *rows) {
                const WasteSplit& waste = row.result.waste_at_peak;
                PageWhatIf shown{.name = row.candidate.name,
                                 .row_class = std::string(row_class_name(row.row_class)),
                                 .ooms = row.ooms(),
                                 .peak_reserved_bytes = row.result.statistics.reserved.peak,
                                 .waste_bytes = waste.reserved - waste.requested,
                                 .segments_allocated = row.result.statistics.segments_allocated,
                                 .retries = row.retries(),
                                 .usable = row.usable,
                                 .note = whatif_note(row),
                                 .as_run = row.is_recorded};
                const auto place = row.is_recorded ? page_.whatif.begin() : page_.whatif.end();
                page_.whatif.insert(place, std::move(shown));
            }
        }
    }

    void add_totals() {
        const MemorySummary& run = device_.recorded;
        const WasteSplit& waste = run.waste_at_peak;
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
    BlockIndex blocks_;
};

}  // namespace

PageData page_content(const Analysis& analysis) {
    const Timeline& timeline = analysis.timeline;
    PageData data;
    data.title = title_of(timeline);
    data.process = timeline.rank < 0 ? fmt::format("pid {}", timeline.pid)
                                     : fmt::format("pid {}, rank {}", timeline.pid, timeline.rank);
    data.command = timeline.fact("command_line");
    for (const DeviceAnalysis& device : analysis.devices) {
        if (const auto& fidelity = device.fidelity) {
            data.notes.push_back(
                fmt::format("replay fidelity: {} of {} placements, {} of {} "
                            "cudaMallocs equal",
                            fidelity->placements_equal,
                            fidelity->placements,
                            fidelity->segments_equal,
                            fidelity->segments));
        }
    }
    PageStacks stacks(analysis.symbols.get(), &data);
    // The page opens with the first of these: a device that ran out of memory, if one did.
    for (const bool failed : {true, false}) {
        for (const DeviceAnalysis& device : analysis.devices) {
            if ((device.recorded.ooms != 0) == failed) {
                data.devices.push_back(DevicePage(analysis, device, &stacks).build());
            }
        }
    }
    // First what is wrong with the trace: known when all stacks have their names.
    std::vector<std::string> notes = warnings_with_stacks(analysis);
    notes.insert(notes.end(), analysis.assumptions.begin(), analysis.assumptions.end());
    data.notes.insert(data.notes.begin(), notes.begin(), notes.end());
    return data;
}

}  // namespace fragtrace::analyzer
