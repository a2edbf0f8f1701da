#include "analyzer/report/page/page_cards.h"

#include "analyzer/analysis/culprit.h"
#include "analyzer/analysis/verdict/verdict_text.h"
#include "analyzer/report/page/page_card_words.h"
#include "analyzer/report/page/page_screen.h"
#include "analyzer/report/text/conclusion_text.h"
#include "analyzer/report/text/text_parts.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace fragtrace::analyzer {
namespace {

class CardBuilder {
  public:
    CardBuilder(const Analysis& analysis,
                const DeviceAnalysis& device,
                const BirthIndex& blocks,
                PageStacks* stacks,
                PageDevice* page)
        : analysis_(analysis), device_(device), blocks_(blocks), stacks_(stacks), page_(page) {}

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
    void add_change(const Recommendation& remedy, PageCard* card) const {
        card->change = remedy_text(device_, remedy);
        // A setting that serves only this request is not offered for copying.
        if (remedy.kind == Recommendation::Kind::kRow && remedy.row != nullptr &&
            !remedy.forecast) {
            card->change_row = remedy.row->candidate.name;
        }
        if (card->kind != PageCardKind::kRetry) {
            card->tried = tried_lines(device_);
        }
    }

    PageCard card_of(const Diagnosis& diagnosis) {
        const Event& event = analysis_.timeline.events[diagnosis.trouble.event];
        PageCard card;
        card.time_ns = event.time_ns;
        card.stack = stacks_->node_of(event.origin);
        card.assumptions = analysis_.assumptions;
        for (const CulpritGroup& group : group_culprits(analysis_, diagnosis, false)) {
            card.culprits.push_back(culprit_of(group, event.time_ns));
            card.culprits.back().outlived = outlived_text(analysis_, device_, group, diagnosis);
        }
        add_holders(diagnosis.trouble.event, &card);
        return card;
    }

    PageCulprit culprit_of(const CulpritGroup& group, std::uint64_t now_ns) {
        PageCulprit row{.stack = stacks_->node_of(group.held.origin),
                        .held = group.held,
                        .held_open_bytes = group.held_open_bytes,
                        .age = device_.state_only
                                   ? std::string()  // its time is not known
                                   : "oldest " + format_duration(now_ns - group.oldest_ns),
                        .phase = analysis_.phases && group.oldest != kNoEvent
                                     ? analysis_.phases->name_of(group.oldest)
                                     : std::string(),
                        .blocks = {},
                        .outlived = {}};
        for (const EventIndex born : group.blocking) {
            if (const auto block = blocks_.find(born)) {
                row.blocks.push_back(*block);
            }
        }
        return row;
    }

    void add_holders(EventIndex event, PageCard* card) const {
        const Holders* at = holders_at(device_, event);
        if (at == nullptr) {
            return;
        }
        const IterationDifference* since = difference_at(device_.held, event);
        card->since = since == nullptr ? "" : fmt::format("step {}", since->against);
        std::uint64_t named_bytes = 0;
        for (const HoldingLine& place : at->places) {
            if (place.held.bytes > 0) {
                named_bytes += static_cast<std::uint64_t>(place.held.bytes);
                card->holders.push_back(
                    {.stack = stacks_->node_of(place.held.origin),
                     .held = place.held,
                     .category = category_text(place),
                     .change = since == nullptr ? std::nullopt : change_of(place, *since)});
            }
        }
        if (any_category_known(*at)) {
            for (const ShownCategory& category : shown_categories(*at)) {
                card->categories.push_back(
                    {.name = std::string(category.name),
                     .bytes = category.bytes,
                     .note = category.says_old()
                                 ? format_bytes(category.should_be_gone) + " older than one step"
                                 : ""});
            }
            card->categories_basis = category_basis(analysis_);
        }
        for (auto& [name, bytes] : outside_parts(at->outside)) {
            card->outside.push_back({.name = std::move(name), .bytes = bytes});
        }
        card->in_use_bytes = at->allocated_bytes;
        // The second line is in the table of holders.
        card->lines = change_lines(device_.held, *at);
        card->lines.resize(std::min<std::size_t>(card->lines.size(), 1));
        if (since != nullptr && at->places_left_out == 0) {
            add_gone(*at, *since, card);
        }
        if (at->places_left_out != 0) {
            card->holders_more = fmt::format(
                "and {}: {}",
                format_counted(at->places_left_out, "more line", "more lines"),
                format_bytes(at->allocated_bytes - std::min(at->allocated_bytes, named_bytes)));
        }
    }

    template <typename Row>
    static std::string category_text(const Row& row) {
        return category_known(row) ? std::string(shown_category(row)) : std::string();
    }

    // Lines that held much at the earlier moment, and nothing now.
    void add_gone(const Holders& at, const IterationDifference& since, PageCard* card) const {
        constexpr std::uint64_t kSmallPart = 100;  // of the memory in use
        for (const HoldingLine& place : since.places) {
            if (place.held.bytes < 0 && same_line(at.places, place) == nullptr &&
                static_cast<std::uint64_t>(-place.held.bytes) > at.allocated_bytes / kSmallPart) {
                HeldBy none = place.held;
                none.bytes = 0;
                none.blocks = 0;
                card->holders.push_back({.stack = stacks_->node_of(place.held.origin),
                                         .held = none,
                                         .category = category_text(place),
                                         .change = place.held.bytes});
            }
        }
    }

    // nullopt: the difference lists only some lines, and not this one.
    static std::optional<std::int64_t> change_of(const HoldingLine& place,
                                                 const IterationDifference& since) {
        if (const HoldingLine* const found = same_line(since.places, place)) {
            return found->held.bytes;
        }
        return since.places.size() < kMostPlaces ? std::optional<std::int64_t>(0) : std::nullopt;
    }

    void add_trouble(const Diagnosis& diagnosis) {
        const Verdict& verdict = diagnosis.verdict;
        const bool retry = diagnosis.trouble.outcome == Outcome::kRetryOk;
        PageCard card = card_of(diagnosis);
        card.kind = retry ? PageCardKind::kRetry : PageCardKind::kOom;
        card.reported = &diagnosis == reported_oom(device_);
        card.heading = retry ? "Retry: the pool had to release its cache" : heading_of(verdict);
        card.sentence =
            retry ? retry_sentence(analysis_, diagnosis) : failure_sentence(device_, diagnosis);
        for (const Survivors& kept : device_.held.survivors) {
            if (kept.of == Survivors::Of::kOutOfMemory && kept.event == diagnosis.trouble.event) {
                card.lines.push_back(survived_line(kept));
            }
        }
        for (ReportLine& line : asleep_lines(diagnosis)) {
            card.lines.push_back(std::move(line));
        }
        const Event& event = analysis_.timeline.events[diagnosis.trouble.event];
        card.asked_by = analysis_.symbols->describe(event.origin);
        // Use the same words as the text report.
        const Conclusion conclusion = conclusion_at(analysis_, device_, diagnosis);
        card.who = culprit_text(conclusion.culprit);
        add_change(conclusion.remedy, &card);
        if (!retry && step_needs_more(device_, diagnosis)) {
            card.forecast_error = forecast_error(device_);
        }
        card.screen = screen_of(card.kind, &verdict, conclusion.culprit, !card.culprits.empty());
        card.question = question_of(card.screen);
        if (const std::string grows = growth_heading(conclusion.culprit, device_); !grows.empty()) {
            card.heading = grows;
        } else if (!retry && step_needs_more(device_, diagnosis)) {
            card.heading = "The step needs more memory than there is (estimate)";
        }
        card.verdict = verdict.id;
        card.requested_bytes = verdict.requested_bytes;
        card.bars = retry ? retry_bars(diagnosis) : failure_bars(verdict);
        card.details.push_back(failure_explanation(device_, diagnosis));
        if (const std::string cheapest = cheapest_text(diagnosis); !cheapest.empty()) {
            card.details.push_back("cheapest: " + cheapest);
        }
        const auto add = [&card](const std::vector<ReportLine>& lines) {
            for (const ReportLine& line : lines) {
                if (line.label != "asleep") {  // beside the live memory
                    card.details.push_back(line.label + ": " + line.text);
                }
            }
        };
        add(moment_lines(analysis_, diagnosis));
        if (card.reported) {
            add(other_failure_lines(analysis_, device_, diagnosis));
        }
        const std::uint64_t all = device_.recorded.ooms + device_.recorded.retries;
        if (all > device_.diagnoses.size()) {
            card.details.push_back(fmt::format(
                "{} of {} failed requests and retries were analysed; the others have a marker.",
                device_.diagnoses.size(),
                format_count(all)));
        }
        page_->markers.push_back(
            {card.time_ns, retry ? PageMarkerKind::kRetry : PageMarkerKind::kOom, card.sentence});
        page_->cards.push_back(std::move(card));
    }

    void add_peak(const Diagnosis& peak) {
        PageCard card = card_of(peak);
        // An out-of-memory that no replayed request explains has no card of its own.
        const bool failed = device_.recorded.ooms != 0;
        const bool pool_failed = !pool_failure(analysis_, device_).empty();
        card.kind = device_.state_only      ? PageCardKind::kState
                    : failed || pool_failed ? PageCardKind::kOom
                    : is_near_miss(device_) ? PageCardKind::kNearMiss
                                            : PageCardKind::kNoOom;
        card.sentence = peak_sentence(analysis_, device_);
        card.details = {"", run_sentences(analysis_, device_)};  // no reason
        card.bars = peak_bars(device_);
        card.verdict = device_.state_only ? "state" : failed ? "not_judged" : "no_oom";
        const Conclusion conclusion = conclusion_of(analysis_, device_);
        card.who = culprit_text(conclusion.culprit);
        add_change(conclusion.remedy, &card);
        card.screen = screen_of(card.kind, nullptr, conclusion.culprit, !card.culprits.empty());
        card.question = question_of(card.screen);
        const std::string grows = growth_heading(conclusion.culprit, device_);
        card.heading = grows.empty() ? peak_heading(analysis_, device_) : grows;
        const EventIndex most = device_.at_peak_allocated.event;
        if (most != kNoEvent) {
            card.holders.clear();
            card.holders_more.clear();
            card.categories.clear();
            card.outside.clear();
            add_holders(most, &card);
            if (most != peak.trouble.event) {
                card.holders_when =
                    fmt::format("at the peak of allocated memory, {}",
                                format_duration(analysis_.timeline.events[most].time_ns));
            }
        }
        page_->cards.push_back(std::move(card));
    }

    const Analysis& analysis_;
    const DeviceAnalysis& device_;
    const BirthIndex& blocks_;
    PageStacks* stacks_;
    PageDevice* page_;
};

}  // namespace

void add_cards(const Analysis& analysis,
               const DeviceAnalysis& device,
               const BirthIndex& blocks,
               PageStacks* stacks,
               PageDevice* page) {
    CardBuilder(analysis, device, blocks, stacks, page).build();
}

}  // namespace fragtrace::analyzer
