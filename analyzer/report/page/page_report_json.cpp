#include "analyzer/report/page/page_report_json.h"

namespace fragtrace::analyzer {

using nlohmann::json;

// JavaScript numbers are exact up to 2^53. No size or time here is larger.
json known_json(std::uint64_t value) {
    return value == kPageUnknown ? json(nullptr) : json(value);
}

json lines_json(const std::vector<ReportLine>& lines) {
    json rows = json::array();
    for (const ReportLine& line : lines) {
        rows.push_back({{"label", line.label}, {"text", line.text}});
    }
    return rows;
}

namespace {

const char* card_name(PageCardKind kind) {
    switch (kind) {
        case PageCardKind::kOom:
            return "oom";
        case PageCardKind::kRetry:
            return "retry";
        case PageCardKind::kNearMiss:
            return "near_miss";
        case PageCardKind::kState:
            return "state";
        case PageCardKind::kNoOom:
            break;
    }
    return "no_oom";
}

const char* screen_name(PageScreen screen) {
    switch (screen) {
        case PageScreen::kBlocked:
            return "blocked";
        case PageScreen::kShortage:
            return "shortage";
        case PageScreen::kGrowth:
            return "growth";
        case PageScreen::kOthers:
            return "others";
        case PageScreen::kRetry:
            return "retry";
        case PageScreen::kNearMiss:
            return "near_miss";
        case PageScreen::kPeak:
            return "peak";
        case PageScreen::kState:
            return "state";
    }
    return "";
}

json parts_json(const std::vector<PagePart>& parts) {
    json rows = json::array();
    for (const PagePart& part : parts) {
        rows.push_back({{"name", part.name}, {"bytes", part.bytes}, {"note", part.note}});
    }
    return rows;
}

json culprit_json(const PageCulprit& culprit) {
    return {{"stack", culprit.stack},
            {"label", culprit.held.label},
            {"held_open", culprit.held_open_bytes},
            {"live", culprit.held.bytes},
            {"count", culprit.held.blocks},
            {"age", culprit.age},
            {"phase", culprit.phase},
            {"outlived", culprit.outlived},
            {"blocks", culprit.blocks}};
}

}  // namespace

json card_json(const PageCard& card) {
    json culprits = json::array();
    for (const PageCulprit& culprit : card.culprits) {
        culprits.push_back(culprit_json(culprit));
    }
    json holders = json::array();
    for (const PageHolder& holder : card.holders) {
        holders.push_back({{"stack", holder.stack},
                           {"label", holder.held.label},
                           {"category", holder.category},
                           {"live", holder.held.bytes},
                           {"count", holder.held.blocks},
                           {"change", holder.change ? json(*holder.change) : json(nullptr)}});
    }
    json bars = json::array();
    for (const PageBar& bar : card.bars) {
        bars.push_back({{"label", bar.label},
                        {"kind", bar.kind},
                        {"bytes", bar.bytes},
                        {"from", bar.from_bytes}});
    }
    return {{"kind", card_name(card.kind)},
            {"screen", screen_name(card.screen)},
            {"question", card.question},
            {"time_ns", card.time_ns},
            {"heading", card.heading},
            {"sentence", card.sentence},
            {"who", card.who},
            {"change", card.change},
            {"change_row", card.change_row},
            {"tried", lines_json(card.tried)},
            {"forecast_error", card.forecast_error},
            {"reported", card.reported},
            {"verdict", card.verdict},
            {"requested", known_json(card.requested_bytes)},
            {"bars", std::move(bars)},
            {"details", card.details},
            {"assumptions", card.assumptions},
            {"stack", card.stack},
            {"asked_by", card.asked_by},
            {"holders_when", card.holders_when},
            {"holders_more", card.holders_more},
            {"since", card.since},
            {"in_use", known_json(card.in_use_bytes)},
            {"categories", parts_json(card.categories)},
            {"categories_basis", card.categories_basis},
            {"outside", parts_json(card.outside)},
            {"lines", lines_json(card.lines)},
            {"culprits", std::move(culprits)},
            {"holders", std::move(holders)}};
}

json growth_json(const PageDevice& device) {
    json rows = json::array();
    for (const PageGrowingLine& line : device.growing) {
        rows.push_back({{"stack", line.stack},
                        {"label", line.held.label},
                        {"category", line.category},
                        {"per_step", line.bytes_per_step},
                        {"grown", line.held.bytes},
                        {"live", line.live_bytes}});
    }
    return {{"when", device.growing_when}, {"rows", rows}, {"lines", lines_json(device.growth)}};
}

json advice_json(const PageDevice& device) {
    json rows = json::array();
    for (const PageAdvice& advice : device.advice) {
        rows.push_back(
            {{"name", advice.name}, {"effect", advice.effect}, {"settings", advice.settings}});
    }
    return rows;
}

json holes_json(const PageDevice& device) {
    json rows = json::array();
    for (const PageHoles& holes : device.holes) {
        rows.push_back({{"bytes", holes.bytes}, {"count", holes.count}, {"serves", holes.serves}});
    }
    return {{"heading", device.holes_heading}, {"rows", rows}, {"more", device.holes_more}};
}

json phase_totals_json(const PageProcess& process) {
    json rows = json::array();
    for (const PagePhaseTotals& phase : process.phases) {
        rows.push_back({{"name", phase.name},
                        {"count", phase.count},
                        {"time_ns", phase.time_ns},
                        {"peak_allocated", phase.peak_allocated},
                        {"peak_reserved", known_json(phase.peak_reserved)},
                        {"change", phase.change_bytes},
                        {"mallocs", known_json(phase.driver_allocs)},
                        {"retries", known_json(phase.retries)}});
    }
    return {{"rows", rows}, {"more", process.phases_more}};
}

}  // namespace fragtrace::analyzer
