#include "analyzer/report/page_cards.h"

#include "analyzer/report/conclusion.h"
#include "analyzer/report/text_parts.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// The rung of the ladder (docs/metrics.md) that served the request, as a headline.
std::string heading_of(const Verdict& verdict) {
    if (verdict.requester == "library") {
        return "A library found no memory beside the pool";
    }
    constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kHeadings = {{
        {"pending", "The memory was freed, but another stream may still use it"},
        {"granularity", "The memory was there, but not in the piece that the pool asks for"},
        {"limit", "A limit that was set stopped it"},
        {"stream_bound", "The memory was free, but it belongs to another stream"},
        {"other_pool", "The memory was free, but it belongs to another pool"},
        {"rounding", "What was missing went into rounding"},
        {"outside_pool", "Others on the card hold what was needed"},
        {"unexplained", "There was room, as far as the record tells"},
        {"genuine", "More was needed than there was"},
    }};
    const auto* const found =
        std::find_if(kHeadings.begin(), kHeadings.end(), [&](const auto& entry) {
            return entry.first == verdict.id;
        });
    return std::string(found == kHeadings.end() ? "The memory was there, but in pieces"
                                                : found->second);
}

class CardBuilder {
  public:
    CardBuilder(const Analysis& analysis,
                const DeviceAnalysis& device,
                const BlockIndex& blocks,
                PageStacks* stacks,
                PageDevice* page)
        : analysis_(analysis),
          device_(device),
          blocks_(blocks),
          stacks_(stacks),
          page_(page),
          conclusion_(conclusion_of(analysis, device)) {}

    void build() {
        for (const Diagnosis& diagnosis : device_.diagnoses) {
            add_trouble(diagnosis);
        }
        const bool ran_out =
            std::any_of(page_->cards.begin(), page_->cards.end(), [](const PageCard& card) {
                return card.kind == PageCardKind::kOom;
            });
        if (!ran_out && device_.peak) {
            add_peak(*device_.peak);
        }
        std::stable_sort(
            page_->cards.begin(), page_->cards.end(), [](const PageCard& a, const PageCard& b) {
                return a.time_ns < b.time_ns;
            });
    }

  private:
    PageCard card_of(const Diagnosis& diagnosis) {
        const Event& event = analysis_.timeline.events[diagnosis.trouble.event];
        PageCard card;
        card.time_ns = event.time_ns;
        card.stack = stacks_->node_of(event.origin);
        card.assumptions = analysis_.assumptions;
        for (const CulpritGroup& group : group_culprits(analysis_, diagnosis, false)) {
            card.culprits.push_back(culprit_of(group, event.time_ns));
        }
        add_holders(diagnosis.trouble.event, &card);
        card.who = who_of(card);
        return card;
    }

    PageCulprit culprit_of(const CulpritGroup& group, std::uint64_t now_ns) {
        PageCulprit row{.stack = stacks_->node_of(group.origin),
                        .label = group.label,
                        .held_open_bytes = group.held_open_bytes,
                        .live_bytes = group.live_bytes,
                        .block_count = group.blocks,
                        .age = "oldest " + format_duration(now_ns - group.oldest_ns),
                        .phase = analysis_.phases && group.oldest != kNoEvent
                                     ? analysis_.phases->name_of(group.oldest)
                                     : std::string(),
                        .blocks = {}};
        for (const EventIndex born : group.pinning) {
            if (const auto block = blocks_.find(born)) {
                row.blocks.push_back(*block);
            }
        }
        return row;
    }

    // Known at each failed request that was looked into, and at the peak of runs without any.
    void add_holders(EventIndex event, PageCard* card) {
        for (const Holders& at : device_.held.holders) {
            if (at.event != event) {
                continue;
            }
            for (const HoldingPlace& place : at.places) {
                if (place.bytes > 0) {
                    card->holders.push_back({.stack = stacks_->node_of(place.origin),
                                             .label = place.label,
                                             .category = std::string(category_name(place.category)),
                                             .live_bytes = static_cast<std::uint64_t>(place.bytes),
                                             .block_count = static_cast<std::uint64_t>(
                                                 std::max<std::int64_t>(0, place.blocks))});
                }
            }
        }
    }

    static std::string who_of(const PageCard& card) {
        if (!card.culprits.empty()) {
            const PageCulprit& first = card.culprits.front();
            return fmt::format("{}: {} in {} {} {} of holes open",
                               first.label,
                               format_bytes(first.live_bytes),
                               format_counted(first.block_count, "block", "blocks"),
                               first.block_count == 1 ? "keeps" : "keep",
                               format_bytes(first.held_open_bytes));
        }
        if (!card.holders.empty()) {
            const PageHolder& first = card.holders.front();
            return fmt::format("{} holds {} in {} ({})",
                               first.label,
                               format_bytes(first.live_bytes),
                               format_counted(first.block_count, "block", "blocks"),
                               first.category);
        }
        return {};
    }

    void add_trouble(const Diagnosis& diagnosis) {
        const Verdict& verdict = diagnosis.verdict;
        const bool retry = diagnosis.trouble.outcome == Outcome::kRetryOk;
        PageCard card = card_of(diagnosis);
        card.kind = retry ? PageCardKind::kRetry : PageCardKind::kOom;
        card.heading = retry ? "Retry: the pool had to give its cache back" : heading_of(verdict);
        card.sentence = verdict_sentence(verdict, diagnosis.trouble.outcome);
        if (!retry) {
            card.change = conclusion_.remedy;
            // The report's own words, where it speaks of the same request.
            if (&diagnosis == first_oom(device_) && !conclusion_.culprit.empty()) {
                card.who = conclusion_.culprit;
            }
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
        page_->markers.push_back(
            {card.time_ns, retry ? PageMarkerKind::kRetry : PageMarkerKind::kOom, card.sentence});
        page_->cards.push_back(std::move(card));
    }

    void add_peak(const Diagnosis& peak) {
        const MemorySummary& run = device_.recorded;
        PageCard card = card_of(peak);
        card.kind = PageCardKind::kWaste;
        card.holders.clear();
        add_holders(device_.most_allocated.event, &card);
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
        card.change = conclusion_.remedy;
        if (!conclusion_.culprit.empty()) {
            card.who = conclusion_.culprit;
        }
        page_->cards.push_back(std::move(card));
    }

    const Analysis& analysis_;
    const DeviceAnalysis& device_;
    const BlockIndex& blocks_;
    PageStacks* stacks_;
    PageDevice* page_;
    Conclusion conclusion_;
};

}  // namespace

void add_cards(const Analysis& analysis,
               const DeviceAnalysis& device,
               const BlockIndex& blocks,
               PageStacks* stacks,
               PageDevice* page) {
    CardBuilder(analysis, device, blocks, stacks, page).build();
}

}  // namespace fragtrace::analyzer
