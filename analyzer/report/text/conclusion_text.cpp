#include "analyzer/report/text/conclusion_text.h"

#include "analyzer/analysis/verdict/verdict_text.h"
#include "analyzer/report/text/text_parts.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <string_view>

namespace fragtrace::analyzer {
namespace {

// ---- the culprit --------------------------------------------------------------------------------

std::string words(const std::monostate& /*nobody*/) {
    return "";
}

std::string words(const BlocksFreeMemory& blocks) {
    const CulpritGroup& group = blocks.group;
    return fmt::format(
        "{}: {} in {} {} {} of free memory from being reused{}",
        group.held.label,
        format_bytes(static_cast<std::uint64_t>(group.held.bytes)),
        format_counted(group.held.blocks, "block", "blocks"),
        group.held.blocks == 1 ? "prevents" : "prevent",
        format_bytes(group.held_open_bytes),
        group.too_little ? "; freeing the blocks of one line alone does not make enough room"
        : group.others_block_more ? "; freeing them makes room for the request, freeing those of a "
                                    "line that blocks more does not"
                                  : "");
}

std::string words(const HoldsMost& most) {
    const std::string grown = most.grown_bytes == 0
                                  ? std::string()
                                  : fmt::format(", {} more than at the same point of step {}",
                                                format_bytes(most.grown_bytes),
                                                most.since);
    const std::string larger =
        most.larger_request_bytes == 0
            ? std::string()
            : fmt::format("; the failed request is for {}, more than all memory in use",
                          format_bytes(most.larger_request_bytes));
    const std::string pending =
        most.pending_bytes == 0
            ? std::string()
            : fmt::format(", of which {} waits for streams", format_bytes(most.pending_bytes));
    return fmt::format("{} holds {} of the {} in use{}{}{}{}",
                       most.place.held.label,
                       format_bytes(static_cast<std::uint64_t>(most.place.held.bytes)),
                       format_bytes(most.in_use_bytes),
                       pending,
                       category_known(most.place)
                           ? fmt::format(" ({})", printable(shown_category(most.place)))
                           : std::string(),
                       grown,
                       larger);
}

std::string_view who_is(HeldOutside::By by) {
    switch (by) {
        case HeldOutside::By::kProcesses:
            return "other processes hold";
        case HeldOutside::By::kLibraries:
            return "libraries hold";
        case HeldOutside::By::kPastPool:
            return "allocations made while caching was off hold";
        case HeldOutside::By::kOther:
            return "other allocations hold";
        case HeldOutside::By::kNotKnown:
            break;
    }
    return "an unknown owner holds";
}

std::string words(const HeldOutside& outside) {
    std::string most;
    if (outside.process) {
        most = fmt::format(", {} of it {} with {}",
                           outside.process->bytes >= outside.bytes ? "all" : "most",
                           largest_process(outside.process->pid, outside.process->program),
                           format_bytes(outside.process->bytes));
        if (outside.listed_before_ns != 0) {
            most +=
                fmt::format(" (as listed {} before)", format_duration(outside.listed_before_ns));
        }
    }
    return fmt::format("{} {} of the card{}{}",
                       who_is(outside.by),
                       format_bytes(outside.bytes),
                       most,
                       outside.inside ? "; " + words(*outside.inside) : "");
}

std::string words(const GrowsEachIteration& grows) {
    const auto bytes = static_cast<std::uint64_t>(grows.place.held.bytes);
    return fmt::format("{}: grows by {} per step, never shrinks; {} from step {} to step {}",
                       grows.place.held.label,
                       format_bytes(bytes / std::max<std::size_t>(grows.last - grows.first, 1)),
                       format_bytes(bytes),
                       grows.first,
                       grows.last);
}

std::string words(const MadePoolGrow& made) {
    return fmt::format("{} caused {} of the {} that the pool allocated from the driver, in {}{}",
                       made.line,
                       format_bytes(made.bytes),
                       format_bytes(made.all_bytes),
                       format_counted(made.segments, "call", "calls"),
                       made.some_freed ? " (some was freed in between)" : "");
}

std::string words(const FreeElsewhere& elsewhere) {
    std::string text = fmt::format(
        "{} free {} {}",
        format_bytes(elsewhere.place.free_bytes),
        elsewhere.of_stream ? "on" : "in",
        elsewhere.of_stream ? stream_text(elsewhere.place) : pool_text(elsewhere.place));
    if (elsewhere.keeper) {
        text += fmt::format("; {} prevents {} of it from being released, with {} in {}",
                            elsewhere.keeper->held.label,
                            format_bytes(elsewhere.keeper->held_open_bytes),
                            format_bytes(elsewhere.keeper->held.bytes),
                            format_counted(elsewhere.keeper->held.blocks, "block", "blocks"));
    }
    return text;
}

std::string words(const CachedByPool& cached) {
    return fmt::format("the pool's cache: {} in wholly free segments", format_bytes(cached.bytes));
}

std::string words(const EarlierModel& model) {
    return fmt::format(
        "{}: {} ({}) of an earlier model, still allocated after a new model replaced it",
        model.place.held.label,
        format_bytes(static_cast<std::uint64_t>(model.place.held.bytes)),
        printable(shown_category(model.place)));
}

// ---- the remedy ---------------------------------------------------------------------------------

constexpr std::string_view kFreeWhatGrows = "free what that line accumulates each step";

// The change as a user would type it, or call it.
std::string change_text(const WhatIfRow& row) {
    const std::string assignment = shell_assignment(row.candidate);
    return assignment.empty() ? row.candidate.name : assignment;
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
    if (row.ooms() != recorded.ooms()) {
        return fmt::format("{} instead of {}",
                           format_counted(row.ooms(), "out-of-memory", "out-of-memories"),
                           recorded.ooms());
    }
    return fmt::format("{} reserved instead of {}{}",
                       reserved,
                       format_bytes(recorded.result.statistics.reserved.peak),
                       retries_text(row, recorded));
}

// The row's effect, its certainty, its cost, and the known facts about later requests.
std::string row_words(const DeviceAnalysis& device, const WhatIfRow& row) {
    const WhatIfRow& recorded = *recorded_row(device.settings);
    const std::string cost = cost_text(row);
    // That the rest of the step fails is told where the step's need is.
    const bool serves = row.ooms() == 0 && recorded.ooms() != 0;
    const std::string follows =
        serves && row.rest_fits.value_or(true) ? what_follows(row) : std::string();
    return fmt::format("{}: {} ({}){}{}{}{}",
                       change_text(row),
                       outcome_of(row, recorded),
                       class_in_sentence(row),
                       cost.empty() ? "" : "; cost: ",
                       cost,
                       follows.empty() ? "" : "; ",
                       follows);
}

std::string change_of_program(const DeviceAnalysis& device, const Recommendation& remedy) {
    std::string text;
    if (remedy.program) {
        text = fmt::format("allocate {}: the request then succeeds ({} for this request)",
                           *remedy.program == ProgramChange::kOneStream ? "and free on one stream"
                                                                        : "both from one pool",
                           row_class_name(class_of_moment(device)));
    }
    if (remedy.free_what_grows) {
        return std::string(kFreeWhatGrows) + (text.empty() ? "" : "; or " + text);
    }
    return text;
}

std::string card_words(const WhatIfRow& row) {
    return row.gets_past() ? fmt::format("{} gets past this request ({}); {}",
                                         row.candidate.name,
                                         class_in_sentence(row),
                                         what_follows(row))
                           : fmt::format("{} is enough for the same requests ({})",
                                         row.candidate.name,
                                         class_in_sentence(row));
}

std::string recommended_row(const DeviceAnalysis& device, const Recommendation& remedy) {
    const std::string row = row_words(device, *remedy.row);
    const std::string of_program = change_of_program(device, remedy);
    if (remedy.free_what_grows) {
        return of_program + "; the run lasts longer with " + row +
               (remedy.forecast ? ": " + forecast_needs(device) : "");
    }
    const std::string either = of_program.empty() ? row : row + "; or " + of_program;
    // If the rest of the step fails anyway, the step has to change first.
    return remedy.forecast ? forecast_needs(device) + "; for this request only: " + either : either;
}

// Why a setting can do more than its replay shows; empty: nothing limits it.
std::string limit_of_replays(const DeviceAnalysis& device) {
    const std::uint64_t adopted = adopted_bytes(device.script);
    return adopted == 0 ? ""
                        : fmt::format(
                              " in a replay that leaves {} from before the recorded requests in "
                              "place (from the start of the program, one may)",
                              format_bytes(adopted));
}

std::string nothing_helps(const DeviceAnalysis& device, const Recommendation& remedy) {
    const std::string of_program = change_of_program(device, remedy);
    std::string text = of_program.empty() ? "" : of_program + "; ";
    if (remedy.without_others) {
        const Diagnosis* failed = reported_oom(device);
        const bool step_fits = failed != nullptr && device.forecast && device.forecast->known() &&
                               !step_needs_more(device, *failed);
        text += fmt::format(
            "end or move the holders outside the pool: this request then fits ({} for this "
            "request){}; ",
            row_class_name(class_of_moment(device)),
            step_fits ? ", and the memory in use of the whole step does, too (estimate)" : "");
    }
    text += device.settings.empty() ? "no other setting was replayed"
                                    : "no usable setting helps" + limit_of_replays(device);
    if (remedy.missing_bytes != 0) {
        text += fmt::format("; this request was {} short", format_bytes(remedy.missing_bytes)) +
                (remedy.forecast ? "" : ", and later ones may need more");
    } else if (remedy.blocking_bytes != 0) {
        text += fmt::format(
            "; the request fits if {} of live blocks are freed earlier or allocated elsewhere",
            format_bytes(remedy.blocking_bytes));
    }
    if (remedy.forecast) {
        return text + (remedy.without_others ? "; with them " : "; ") + forecast_needs(device);
    }
    return remedy.card == nullptr ? text : text + "; " + card_words(*remedy.card);
}

}  // namespace

std::string shell_assignment(const Candidate& candidate) {
    if (candidate.remedy == Remedy::kCachingOff) {
        return candidate.name;
    }
    return candidate.remedy == Remedy::kSettings && !candidate.config.empty()
               ? "PYTORCH_CUDA_ALLOC_CONF=" + candidate.config
               : std::string();
}

std::string failure_sentence(const DeviceAnalysis& device, const Diagnosis& diagnosis) {
    return verdict_sentence(
        diagnosis.verdict, diagnosis.trouble.outcome, !step_needs_more(device, diagnosis));
}

std::string failure_explanation(const DeviceAnalysis& device, const Diagnosis& diagnosis) {
    const bool in_spite = diagnosis.verdict.despite_free_memory();
    return (in_spite && step_needs_more(device, diagnosis)
                ? "the whole step requests more than there is (estimate); at this request: "
                : "") +
           verdict_explanation(diagnosis.verdict);
}

std::string culprit_text(const Culprit& culprit) {
    return std::visit([](const auto& of) { return words(of); }, culprit);
}

std::string tried_text(const Trial& trial) {
    constexpr std::size_t kMostBytes = 400;
    return printable(shorten(fmt::format("{}: {}", trial.change, trial.outcome), kMostBytes));
}

std::string remedy_text(const DeviceAnalysis& device, const Recommendation& remedy) {
    switch (remedy.kind) {
        case Recommendation::Kind::kNone:
            break;
        case Recommendation::Kind::kRow:
            return recommended_row(device, remedy);
        case Recommendation::Kind::kEmptyCacheBefore:
            return fmt::format(
                "call torch.cuda.empty_cache() just before this request ({} for this request)",
                row_class_name(class_of_moment(device)));
        case Recommendation::Kind::kNothingHelps:
            return nothing_helps(device, remedy);
        case Recommendation::Kind::kTooDear:
            return "no tested change is worth its cost: those with fewer retries cost more than "
                   "the retries; use less memory to avoid retries";
        case Recommendation::Kind::kNoFewerRetries:
            return "no usable change has fewer retries" + limit_of_replays(device) +
                   "; use less memory to avoid retries";
        case Recommendation::Kind::kFreeWhatGrows:
            return std::string(kFreeWhatGrows);
        case Recommendation::Kind::kFreeEarlierModel:
            return fmt::format(
                "free the earlier model and its optimizer before you create the next: at most {} "
                "less in use",
                format_bytes(remedy.releasable_bytes));
        case Recommendation::Kind::kNothingSaves:
            return "no usable setting saves 2 % or more" + limit_of_replays(device) +
                   "; use less memory (see holders)";
        case Recommendation::Kind::kReplayServes:
            return fmt::format(
                "unknown: in a replay {} the recorded settings serve this request",
                device.capacity_known
                    ? fmt::format("with {} for the pool", format_bytes(device.capacity_bytes))
                    : "without a capacity (the trace does not have it)");
        case Recommendation::Kind::kReplayHasNoRetry:
            return "unknown: a replay of the recorded settings has no retry";
        case Recommendation::Kind::kReplayFails:
            return "unknown: a replay of the recorded settings runs out of memory";
    }
    return "";
}

std::string class_in_sentence(const WhatIfRow& row) {
    return row.gets_past() && row.row_class == RowClass::kBound ? "exact up to this request"
                                                                : row.class_text();
}

std::string rest_text(std::optional<bool> rest_fits) {
    return !rest_fits   ? "what follows is unknown"
           : *rest_fits ? "the rest of the step is forecast to fit (estimate)"
                        : "the rest of the step is forecast to fail (estimate)";
}

std::string what_follows(const WhatIfRow& row) {
    return row.gets_past() ? rest_text(row.rest_fits) : "";
}

std::string forecast_needs(const DeviceAnalysis& device) {
    if (!device.forecast || !device.forecast->known()) {
        return "";
    }
    const Forecast& forecast = *device.forecast;
    if (forecast.shortfall_bytes == 0) {
        return "the whole step is forecast to fit (estimate)";
    }
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

std::string forecast_error(const DeviceAnalysis& device) {
    // The table of scripts/forecast-accuracy in docs/fidelity.md; tests/forecast compares both.
    return device.forecast && device.forecast->known() && device.forecast->shortfall_bytes != 0
               ? "in tests with 9 PyTorch programs a card from 8.1 % too small to 3.9 % too large"
               : "";
}

std::string growth_forecast_text(const GrowthForecast& forecast) {
    return forecast.at_iteration == 0 ? ""
                                      : fmt::format(
                                            "out of memory at about step {} at this rate "
                                            "(estimate: {} more per step, {} free at step {})",
                                            format_count(forecast.at_iteration),
                                            format_bytes(forecast.bytes_per_iteration),
                                            format_bytes(forecast.left_bytes),
                                            format_count(forecast.recorded_iterations));
}

}  // namespace fragtrace::analyzer
