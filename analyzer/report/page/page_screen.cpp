#include "analyzer/report/page/page_screen.h"

#include <variant>

namespace fragtrace::analyzer {
namespace {

PageScreen screen_of_failure(const Verdict& verdict, const Culprit& culprit, bool has_blockers) {
    if (verdict.id == "outside_pool") {
        return PageScreen::kOthers;
    }
    // Of these verdicts none is about free memory of the pool that something blocks. Nor is that
    // the question if nothing blocks it, or if the line that holds most is to blame
    // (step_needs_more()).
    const bool short_of_memory = !has_blockers || std::holds_alternative<HoldsMost>(culprit) ||
                                 verdict.id == "genuine" || verdict.id == "limit" ||
                                 verdict.id == "unexplained";
    return short_of_memory ? PageScreen::kShortage : PageScreen::kBlocked;
}

}  // namespace

PageScreen screen_of(PageCardKind kind,
                     const Verdict* verdict,
                     const Culprit& culprit,
                     bool has_blockers) {
    if (kind == PageCardKind::kState) {
        return PageScreen::kState;
    }
    if (kind != PageCardKind::kRetry && std::holds_alternative<GrowsEachIteration>(culprit)) {
        return PageScreen::kGrowth;
    }
    switch (kind) {
        case PageCardKind::kOom:
            return verdict == nullptr ? PageScreen::kPeak
                                      : screen_of_failure(*verdict, culprit, has_blockers);
        case PageCardKind::kRetry:
            return PageScreen::kRetry;
        case PageCardKind::kNearMiss:
            return PageScreen::kNearMiss;
        default:
            return PageScreen::kPeak;
    }
}

std::string_view question_of(PageScreen screen) {
    switch (screen) {
        case PageScreen::kBlocked:
            return "Which allocations block free memory?";
        case PageScreen::kShortage:
            return "Which lines hold the memory when it runs out?";
        case PageScreen::kGrowth:
            return "Which line grows with every step?";
        case PageScreen::kOthers:
            return "Who else holds memory of this card?";
        case PageScreen::kRetry:
            return "Why did the pool have to release its cache?";
        case PageScreen::kNearMiss:
            return "How close was it, and which lines hold the memory?";
        case PageScreen::kPeak:
            return "Which lines hold the memory at the peak?";
        case PageScreen::kState:
            return "Which lines hold the memory at this moment?";
    }
    return "";
}

}  // namespace fragtrace::analyzer
