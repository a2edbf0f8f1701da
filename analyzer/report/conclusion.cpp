#include "analyzer/report/conclusion.h"

#include "analyzer/report/culprit.h"
#include "analyzer/report/text.h"
#include "analyzer/report/text_parts.h"
#include "analyzer/support/units.h"
#include "analyzer/whatif/order.h"
#include "analyzer/whatif/remedies.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

const std::string kFreeWhatGrows = "free what that line keeps from one iteration to the next";

// What to change, in words, and the row that says so, where one does.
struct Advised {
    std::string text;
    const WhatIfRow* row = nullptr;
};

// As somebody would type it, or call it.
std::string change_text(const WhatIfRow& row) {
    const Candidate& candidate = row.candidate;
    if (candidate.remedy == Remedy::kSettings && !candidate.config.empty()) {
        return "PYTORCH_CUDA_ALLOC_CONF=" + candidate.config;
    }
    return candidate.name;
}

bool is_for_the_program(const WhatIfRow& row) {
    return row.usable && row.candidate.remedy != Remedy::kOthersGone;
}

std::string retries_text(const WhatIfRow& row, const WhatIfRow& recorded) {
    return row.retries() == recorded.retries()
               ? ""
               : fmt::format(", {} instead of {}",
                             format_counted(row.retries(), "retry", "retries"),
                             recorded.retries());
}

std::string outcome_of(const WhatIfRow& row, const WhatIfRow& recorded) {
    const std::string reserved = format_bytes(row.result.statistics.reserved.peak);
    if (row.ooms() == 0 && recorded.ooms() != 0) {
        const std::string retries =
            row.retries() == 0
                ? std::string()
                : fmt::format(" and {}", format_counted(row.retries(), "retry", "retries"));
        return fmt::format("{} with {} reserved{}",
                           row.gets_past() ? "gets past this request" : "the same requests fit",
                           reserved,
                           retries);
    }
    if (row.ooms() != 0) {
        return fmt::format("{} instead of {}",
                           format_counted(row.ooms(), "out-of-memory", "out-of-memories"),
                           recorded.ooms());
    }
    return fmt::format("{} reserved instead of {}{}",
                       reserved,
                       format_bytes(recorded.result.statistics.reserved.peak),
                       retries_text(row, recorded));
}

// What the row does, how certain that is, what it costs, and what follows where the record ends.
Advised advised(const WhatIfRow& row, const WhatIfRow& recorded) {
    const std::string cost = cost_text(row);
    const std::string follows =
        row.ooms() == 0 && recorded.ooms() != 0 ? what_follows(row) : std::string();
    return {fmt::format("{}: {} ({}){}{}{}{}",
                        change_text(row),
                        outcome_of(row, recorded),
                        class_in_sentence(row),
                        cost.empty()         ? ""
                        : costs_nothing(row) ? "; no cost: "
                                             : "; cost: ",
                        cost,
                        follows.empty() ? "" : "; ",
                        follows),
            &row};
}

// What the program itself could do, which no replay of the same requests shows.
std::string change_of_program(const DeviceAnalysis& device, const Verdict& verdict) {
    const FreePlace* place = serving_place(verdict);
    if (place == nullptr) {
        return "";
    }
    if (verdict.id == "stream_bound") {
        return fmt::format(
            "allocate and free on one stream: then it would have been served ({} for that moment)",
            row_class_name(class_of_moment(device)));
    }
    return place->private_pool == verdict.places->own.private_pool
               ? ""  // the size classes: no program chooses them
               : fmt::format(
                     "allocate both from one pool: then it would have been served ({} for that "
                     "moment)",
                     row_class_name(class_of_moment(device)));
}

// Of ranked rows the first is the best. Rows of which the forecast says that the step fails later
// come after those that reach its end. Where the replay of the recorded settings does not end as
// the record did, no row says what would have.
const WhatIfRow* first_worth_its_price(const DeviceAnalysis& device) {
    const WhatIfRow* recorded = recorded_row(device.settings);
    if (recorded == nullptr || !replay_ends_as_recorded(device)) {
        return nullptr;
    }
    const std::vector<const WhatIfRow*> rows = ranked_rows(device);
    for (const bool to_the_end : {true, false}) {
        for (const WhatIfRow* row : rows) {
            if (is_for_the_program(*row) && is_worth_its_price(*row, *recorded) &&
                (!to_the_end || row->rest_fits.value_or(true))) {
                return row;
            }
        }
    }
    return nullptr;
}

Advised best_change(const DeviceAnalysis& device) {
    const WhatIfRow* row = first_worth_its_price(device);
    return row == nullptr ? Advised{} : advised(*row, *recorded_row(device.settings));
}

std::string card_text(const DeviceAnalysis& device) {
    const WhatIfRow* row = smallest_fitting(device);
    return row == nullptr     ? ""
           : row->gets_past() ? fmt::format("{} gets past this request ({}); {}",
                                            row->candidate.name,
                                            class_in_sentence(*row),
                                            what_follows(*row))
                              : fmt::format("{} would do for the same requests ({})",
                                            row->candidate.name,
                                            class_in_sentence(*row));
}

Advised remedy_of_failure(const DeviceAnalysis& device, const Diagnosis& oom, bool by_growth) {
    const Verdict& verdict = oom.verdict;
    if (verdict.requester == "library" && verdict.id == "releasable") {
        return {fmt::format("torch.cuda.empty_cache() just before ({} for that moment)",
                            row_class_name(class_of_moment(device)))};
    }
    if (!replay_ends_as_recorded(device)) {
        return {fmt::format(
            "cannot be told: replayed {}, the recorded settings serve it as well",
            device.capacity_known
                ? fmt::format("with {} for the pool", format_bytes(device.capacity_bytes))
                : "without a capacity, which the trace does not tell")};
    }
    std::string of_program = change_of_program(device, verdict);
    if (by_growth) {
        of_program = kFreeWhatGrows + (of_program.empty() ? "" : "; or " + of_program);
    }
    const std::string needs = forecast_needs(device);
    if (Advised change = best_change(device); change.row != nullptr) {
        if (!change.row->rest_fits.value_or(true) && !needs.empty()) {
            change.text += ": " + needs;
        }
        if (by_growth) {
            change.text = of_program + "; it lasts longer with " + change.text;
        } else if (!of_program.empty()) {
            change.text += "; or " + of_program;
        }
        return change;
    }
    const std::uint64_t asked = std::max(verdict.requested_bytes, verdict.rounded_bytes);
    const std::uint64_t free = verdict.free_bytes + verdict.device_free_bytes;
    std::string text = of_program.empty() ? "" : of_program + "; ";
    text += "no usable setting tried helps";
    if (by_growth) {
        return {text};
    }
    if (!verdict.despite_free_memory() && asked > free) {
        text += fmt::format("; this request was {} short", format_bytes(asked - free)) +
                (needs.empty() ? ", and later ones may need more" : "");
    } else if (oom.cheapest.bytes_to_free != 0) {
        text += fmt::format(
            "; {} of live blocks, freed before or allocated elsewhere, make room for this request",
            format_bytes(oom.cheapest.bytes_to_free));
    }
    if (!needs.empty()) {
        return {text + "; " + needs};
    }
    const std::string card = card_text(device);
    return {card.empty() ? text : text + "; " + card};
}

// The first row that has fewer of them, and does not take more synchronisations for that or is
// worth its price anyway. Caching off is measured by its price alone: it makes every request one.
Advised remedy_of_retry(const DeviceAnalysis& device) {
    const WhatIfRow* recorded = recorded_row(device.settings);
    if (recorded == nullptr) {
        return {};
    }
    if (recorded->retries() == 0) {
        return {"cannot be told: replayed, the recorded settings need none"};
    }
    bool too_dear = false;
    for (const WhatIfRow* row : ranked_rows(device)) {
        if (!is_for_the_program(*row) || row->ooms() > recorded->ooms() || row->fails_first() ||
            row->retries() >= recorded->retries()) {
            continue;
        }
        const bool uncached = row->candidate.remedy == Remedy::kCachingOff;
        if (is_worth_its_price(*row, *recorded) ||
            (!uncached && synchronisations(*row) <= synchronisations(*recorded))) {
            return advised(*row, *recorded);
        }
        too_dear = true;
    }
    return {
        too_dear
            ? "no change tried is worth it: those with fewer retries cost more than the retries; "
              "less memory in use would avoid them"
            : "no usable change tried has fewer retries; less memory in use would avoid them"};
}

Advised remedy_without_failure(const DeviceAnalysis& device) {
    if (device.growth_forecast && device.growth_forecast->matters) {
        return {std::string(kFreeWhatGrows)};
    }
    if (const Survivors* kept = kept_model(device)) {
        return {fmt::format(
            "let go of the earlier model and its optimizer before the next is made: at most {} "
            "less in use",
            format_bytes(kept->bytes))};
    }
    if (!device.diagnoses.empty()) {
        return remedy_of_retry(device);
    }
    if (Advised change = best_change(device); change.row != nullptr) {
        return change;
    }
    if (!replay_ends_as_recorded(device)) {
        return {"cannot be told: replayed, the recorded settings run out of memory"};
    }
    return {recorded_row(device.settings) == nullptr
                ? ""
                : "no usable setting saves 2 %: only holding less would, see holders"};
}

Conclusion conclusion_from(std::string culprit, const Advised& remedy) {
    return {.culprit = std::move(culprit),
            .remedy = remedy.text,
            .row = remedy.row == nullptr ? "" : remedy.row->candidate.name};
}

}  // namespace

std::string class_in_sentence(const WhatIfRow& row) {
    return row.gets_past() && row.row_class == RowClass::kBound ? "exact up to there"
                                                                : row.class_text();
}

std::string what_follows(const WhatIfRow& row) {
    return !row.gets_past() ? ""
           : !row.rest_fits ? "what would come after it is not in the trace"
           : *row.rest_fits ? "the rest of the step is forecast to fit (estimate)"
                            : "the rest of the step is forecast to fail (estimate)";
}

std::string forecast_needs(const DeviceAnalysis& device) {
    if (!device.forecast || !device.forecast->known()) {
        return "";
    }
    const Forecast& forecast = *device.forecast;
    const std::string smaller =
        forecast.fitting_part
            ? fmt::format("or a batch or length {:.0f} % smaller",
                          std::ceil(100 * (1 - *forecast.fitting_part)))
            : fmt::format("or {:.0f} % less in use",
                          std::ceil(100 * static_cast<double>(forecast.shortfall_bytes) /
                                    static_cast<double>(std::max<std::uint64_t>(
                                        1, forecast.least_capacity_bytes))));
    return fmt::format(
        "the whole step is forecast to need {} more: a card of at least {}, {} (estimate)",
        format_bytes(forecast.shortfall_bytes),
        format_bytes(forecast.least_card_bytes),
        smaller);
}

bool replay_ends_as_recorded(const DeviceAnalysis& device) {
    const WhatIfRow* recorded = recorded_row(device.settings);
    return recorded == nullptr || (recorded->ooms() != 0) == (first_oom(device) != nullptr);
}

RowClass class_of_moment(const DeviceAnalysis& device) {
    return device.capacity_known && sweep_context(device).is_exact() ? RowClass::kExact
                                                                     : RowClass::kEstimate;
}

const WhatIfRow* best_remedy(const DeviceAnalysis& device) {
    return first_oom(device) != nullptr ? first_worth_its_price(device)
                                        : remedy_without_failure(device).row;
}

Conclusion conclusion_of(const Analysis& analysis, const DeviceAnalysis& device) {
    if (const Diagnosis* oom = first_oom(device)) {
        return conclusion_at(analysis, device, *oom);
    }
    if (!device.fidelity || device.recorded.peak_reserved == 0) {
        return {};  // no pool whose settings could be changed
    }
    return conclusion_from(culprit_without_failure(analysis, device),
                           remedy_without_failure(device));
}

Conclusion conclusion_at(const Analysis& analysis,
                         const DeviceAnalysis& device,
                         const Diagnosis& diagnosis) {
    if (!device.fidelity) {  // no pool whose settings could be changed
        return {culprit_of_failure(analysis, device, diagnosis), "", ""};
    }
    if (diagnosis.trouble.outcome == Outcome::kRetryOk) {
        return conclusion_from(culprit_of_retry(analysis, device, diagnosis),
                               remedy_of_retry(device));
    }
    return conclusion_from(
        culprit_of_failure(analysis, device, diagnosis),
        remedy_of_failure(device, diagnosis, failed_by_growth(analysis, device, diagnosis)));
}

const WhatIfRow* smallest_fitting(const DeviceAnalysis& device) {
    const auto found = std::find_if(device.capacities.begin(),
                                    device.capacities.end(),
                                    [](const WhatIfRow& row) { return row.ooms() == 0; });
    return found == device.capacities.end() ? nullptr : &*found;
}

const WhatIfRow* largest_failing(const DeviceAnalysis& device) {
    const auto found = std::find_if(device.capacities.rbegin(),
                                    device.capacities.rend(),
                                    [](const WhatIfRow& row) { return row.ooms() != 0; });
    return found == device.capacities.rend() ? nullptr : &*found;
}

}  // namespace fragtrace::analyzer
