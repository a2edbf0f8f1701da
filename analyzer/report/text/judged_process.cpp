#include "analyzer/report/text/judged_process.h"

#include "analyzer/analysis/conclusion.h"
#include "analyzer/analysis/verdict/verdict_text.h"
#include "analyzer/report/text/conclusion_text.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>
#include <variant>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kTextWidth = 400;
constexpr std::size_t kNameWidth = 160;

std::string text(const std::string& from) {
    return summary_word(from, kTextWidth);
}

FailureSummary failure_of(const Analysis& analysis,
                          const DeviceAnalysis& device,
                          const Diagnosis& diagnosis) {
    const Conclusion conclusion = conclusion_at(analysis, device, diagnosis);
    const Event event = analysis.timeline.events[diagnosis.trouble.event];
    const std::uint64_t requested_bytes = diagnosis.verdict.requested_bytes;
    const std::string line = analysis.symbols->describe(event.origin);
    const std::string at = line == "unknown" ? "" : line;
    const bool forecast = device.forecast && device.forecast->known() &&
                          device.forecast->failed == diagnosis.trouble.event;
    return {.time_ns = event.time_ns,
            .requested_bytes = requested_bytes,
            .allocated_bytes = diagnosis.verdict.allocated_bytes,
            .forecast_card_bytes = forecast ? device.forecast->least_card_bytes : 0,
            .verdict = std::string(diagnosis.verdict.id),
            .why = text(failure_sentence(device, diagnosis)),
            .at = summary_word(at, kNameWidth),
            .culprit = text(culprit_text(conclusion.culprit)),
            .remedy = text(remedy_text(device, conclusion.remedy))};
}

ReplaySummary replay_of(const WhatIfRow& row, bool card) {
    return {.name = summary_word(row.candidate.name, kNameWidth),
            .total_bytes = card ? row.candidate.total_bytes : 0,
            .ooms = row.ooms(),
            .retries = row.retries(),
            .peak_reserved = summarize(row.result).peak_reserved,
            .usable = row.usable,
            .recorded = row.is_recorded,
            .gets_past = row.gets_past(),
            .rest_fits = row.rest_fits,
            .class_words = summary_word(row.class_text(), kNameWidth)};
}

std::vector<ReplaySummary> replays_of(const std::vector<WhatIfRow>& rows, bool cards) {
    std::vector<ReplaySummary> made;
    for (const WhatIfRow& row : rows) {
        if (made.size() < kMostSummaryReplays) {
            made.push_back(replay_of(row, cards));
        }
    }
    return made;
}

}  // namespace

void add_judgement(const Analysis& analysis, ProcessSummary* process) {
    process->analysed = true;
    for (ProcessDevice& device : process->devices) {
        const auto found = std::find_if(
            analysis.devices.begin(), analysis.devices.end(), [&](const DeviceAnalysis& other) {
                return other.device == device.device;
            });
        if (found == analysis.devices.end()) {
            continue;
        }
        device.failures.clear();
        for (const Diagnosis& diagnosis : found->diagnoses) {
            if (diagnosis.trouble.outcome != Outcome::kOutOfMemory) {
                continue;
            }
            const std::uint64_t time_ns = analysis.timeline.events[diagnosis.trouble.event].time_ns;
            if (device.failures.size() < kMostSummaryFailures) {
                device.failures.push_back(failure_of(analysis, *found, diagnosis));
            } else if (process->start_unix_ns + time_ns == process->named_oom()) {
                device.failures.back() = failure_of(analysis, *found, diagnosis);
            }
        }
        device.settings = replays_of(found->settings, false);
        device.cards = replays_of(found->capacities, true);
        process->replayed = process->replayed || !device.settings.empty();
    }
}

}  // namespace fragtrace::analyzer
