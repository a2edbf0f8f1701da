#include "analyzer/analysis/conclusion.h"

#include "analyzer/analysis/verdict/verdict_text.h"
#include "analyzer/analysis/whatif/ranking.h"
#include "analyzer/analysis/whatif/row_costs.h"

#include <algorithm>

namespace fragtrace::analyzer {
namespace {

using Kind = Recommendation::Kind;

// Segments from before the recorded requests stay in place in every replay but that without a
// cache. Then caching off would win only because the other rows cannot show what they can do.
bool is_for_the_program(const DeviceAnalysis& device, const WhatIfRow& row) {
    const bool compares =
        row.candidate.remedy != Remedy::kCachingOff || adopted_bytes(device.script) == 0;
    return row.usable && row.candidate.remedy != Remedy::kOthersGone && compares;
}

std::optional<ProgramChange> change_of_program(const Verdict& verdict) {
    const FreePlace* place = serving_place(verdict);
    if (place == nullptr) {
        return std::nullopt;
    }
    if (verdict.id == "stream_bound") {
        return ProgramChange::kOneStream;
    }
    if (place->private_pool == verdict.places->own.private_pool) {
        return std::nullopt;  // the pools differ only in size class, which no program can choose
    }
    return ProgramChange::kOnePool;
}

// Picks the first of the ranked rows. Rows whose step is forecast to fail later come after those
// that reach its end. If the replay of the recorded settings does not end as the recorded run did,
// no row can say what would help.
const WhatIfRow* first_worth_its_price(const DeviceAnalysis& device) {
    const WhatIfRow* recorded = recorded_row(device.settings);
    if (recorded == nullptr || !replay_ends_as_recorded(device)) {
        return nullptr;
    }
    const std::vector<const WhatIfRow*> rows = ranked_rows(device);
    for (const bool to_the_end : {true, false}) {
        for (const WhatIfRow* row : rows) {
            if (is_for_the_program(device, *row) && is_worth_its_price(*row, *recorded) &&
                (!to_the_end || row->rest_fits.value_or(true))) {
                return row;
            }
        }
    }
    return nullptr;
}

Recommendation remedy_of_failure(const DeviceAnalysis& device,
                                 const Diagnosis& oom,
                                 bool by_growth) {
    const Verdict& verdict = oom.verdict;
    if (verdict.requester == "library" && verdict.id == "releasable") {
        return {.kind = Kind::kEmptyCacheBefore};
    }
    if (!replay_ends_as_recorded(device)) {
        return {.kind = Kind::kReplayServes};
    }
    Recommendation remedy = {.kind = Kind::kNothingHelps,
                             .free_what_grows = by_growth,
                             .program = change_of_program(verdict),
                             .forecast = device.forecast && device.forecast->known() &&
                                         device.forecast->failed == oom.trouble.event};
    if (const WhatIfRow* row = first_worth_its_price(device)) {
        remedy.kind = Kind::kRow;
        remedy.row = row;
        remedy.forecast = remedy.forecast && !row->rest_fits.value_or(true);
        return remedy;
    }
    if (by_growth) {
        remedy.forecast = false;
        return remedy;
    }
    remedy.missing_bytes = verdict.missing_bytes();
    if (remedy.missing_bytes == 0) {
        remedy.blocking_bytes = oom.cheapest.bytes_to_free;
    }
    remedy.card = remedy.forecast ? nullptr : smallest_fitting(device);
    remedy.without_others = verdict.id == "outside_pool";
    return remedy;
}

// Picks the first row with fewer retries that needs no more synchronisations, or is worth its price
// anyway. Caching off is judged by its price alone, since it makes every request a synchronisation.
Recommendation remedy_of_retry(const DeviceAnalysis& device) {
    const WhatIfRow* recorded = recorded_row(device.settings);
    if (recorded == nullptr) {
        return {};
    }
    if (recorded->retries() == 0) {
        return {.kind = Kind::kReplayHasNoRetry};
    }
    bool too_dear = false;
    for (const WhatIfRow* row : ranked_rows(device)) {
        if (!is_for_the_program(device, *row) || row->ooms() > recorded->ooms() ||
            row->fails_first() || row->retries() >= recorded->retries()) {
            continue;
        }
        const bool uncached = row->candidate.remedy == Remedy::kCachingOff;
        if (is_worth_its_price(*row, *recorded) ||
            (!uncached && synchronisations(*row) <= synchronisations(*recorded))) {
            return {.kind = Kind::kRow, .row = row};
        }
        too_dear = true;
    }
    return {.kind = too_dear ? Kind::kTooDear : Kind::kNoFewerRetries};
}

Recommendation remedy_without_failure(const DeviceAnalysis& device) {
    if (device.growth_forecast && device.growth_forecast->matters) {
        return {.kind = Kind::kFreeWhatGrows};
    }
    if (const Survivors* kept = kept_model(device)) {
        return {.kind = Kind::kFreeEarlierModel, .releasable_bytes = kept->bytes};
    }
    if (!device.diagnoses.empty()) {
        return remedy_of_retry(device);
    }
    if (const WhatIfRow* row = first_worth_its_price(device)) {
        return {.kind = Kind::kRow, .row = row};
    }
    if (!replay_ends_as_recorded(device)) {
        return {.kind = Kind::kReplayFails};
    }
    return {.kind = recorded_row(device.settings) == nullptr ? Kind::kNone : Kind::kNothingSaves};
}

}  // namespace

bool is_near_miss(const DeviceAnalysis& device) {
    constexpr std::uint64_t kLittlePart = 10;
    const std::uint64_t reserved = device.recorded.peak_reserved;
    return device.recorded.retries != 0 ||
           (device.capacity_known &&
            device.capacity_bytes - std::min(device.capacity_bytes, reserved) <
                device.capacity_bytes / kLittlePart);
}

bool replay_ends_as_recorded(const DeviceAnalysis& device) {
    const WhatIfRow* recorded = recorded_row(device.settings);
    return recorded == nullptr || (recorded->ooms() != 0) == (reported_oom(device) != nullptr);
}

RowClass class_of_moment(const DeviceAnalysis& device) {
    return device.capacity_known && sweep_context(device).is_exact() ? RowClass::kExact
                                                                     : RowClass::kEstimate;
}

const WhatIfRow* best_remedy(const DeviceAnalysis& device) {
    return reported_oom(device) != nullptr ? first_worth_its_price(device)
                                           : remedy_without_failure(device).row;
}

Conclusion conclusion_of(const Analysis& analysis, const DeviceAnalysis& device) {
    if (const Diagnosis* oom = reported_oom(device)) {
        return conclusion_at(analysis, device, *oom);
    }
    if (!device.fidelity || device.recorded.peak_reserved == 0) {
        return {};  // no pool whose settings could change
    }
    return {culprit_without_failure(analysis, device), remedy_without_failure(device)};
}

Conclusion conclusion_at(const Analysis& analysis,
                         const DeviceAnalysis& device,
                         const Diagnosis& diagnosis) {
    if (!device.fidelity) {  // no pool whose settings could change
        return {culprit_of_failure(analysis, device, diagnosis), {}};
    }
    if (diagnosis.trouble.outcome == Outcome::kRetryOk) {
        // Fewer retries do not help a run that fails. Its failure has the remedy.
        return {culprit_of_retry(analysis, device, diagnosis),
                reported_oom(device) == nullptr ? remedy_of_retry(device) : Recommendation{}};
    }
    return {culprit_of_failure(analysis, device, diagnosis),
            remedy_of_failure(device, diagnosis, failed_by_growth(analysis, device, diagnosis))};
}

const WhatIfRow* smallest_fitting(const DeviceAnalysis& device) {
    for (const bool to_the_end : {true, false}) {
        for (const WhatIfRow& row : device.capacities) {
            if (row.ooms() == 0 && (!to_the_end || row.rest_fits.value_or(true))) {
                return &row;
            }
        }
    }
    return nullptr;
}

const WhatIfRow* largest_failing(const DeviceAnalysis& device) {
    const auto found = std::find_if(device.capacities.rbegin(),
                                    device.capacities.rend(),
                                    [](const WhatIfRow& row) { return row.ooms() != 0; });
    return found == device.capacities.rend() ? nullptr : &*found;
}

}  // namespace fragtrace::analyzer
