#include "analyzer/report/text/judged_process.h"

#include "analyzer/analysis/conclusion.h"
#include "analyzer/analysis/verdict/verdict_text.h"
#include "analyzer/report/text/conclusion_text.h"
#include "analyzer/support/units.h"

#include <algorithm>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kMostFailures = 4;
constexpr std::size_t kMostReplays = 32;
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
    return {.time_ns = event.time_ns,
            .requested_bytes = diagnosis.verdict.requested_bytes,
            .verdict = std::string(diagnosis.verdict.id),
            .why = text(verdict_sentence(diagnosis.verdict, Outcome::kOutOfMemory)),
            .at = summary_word(analysis.symbols->describe(event.origin), kNameWidth),
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
            .class_words = summary_word(row.class_text(), kNameWidth)};
}

std::vector<ReplaySummary> replays_of(const std::vector<WhatIfRow>& rows, bool cards) {
    std::vector<ReplaySummary> made;
    for (const WhatIfRow& row : rows) {
        if (made.size() < kMostReplays) {
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
            if (diagnosis.trouble.outcome == Outcome::kOutOfMemory &&
                device.failures.size() < kMostFailures) {
                device.failures.push_back(failure_of(analysis, *found, diagnosis));
            }
        }
        device.settings = replays_of(found->settings, false);
        device.cards = replays_of(found->capacities, true);
        process->replayed = process->replayed || !device.settings.empty();
    }
}

}  // namespace fragtrace::analyzer
