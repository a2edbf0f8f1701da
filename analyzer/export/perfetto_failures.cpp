#include "analyzer/export/perfetto_failures.h"

#include "analyzer/analysis/conclusion.h"
#include "analyzer/analysis/verdict/verdict_text.h"
#include "analyzer/report/text/conclusion_text.h"
#include "analyzer/support/terminal.h"

namespace fragtrace::analyzer {
namespace {

// The line of the program that the culprit names; empty = none.
std::string line_of(const Culprit& culprit) {
    struct Line {
        std::string operator()(const std::monostate& /*none*/) const { return {}; }

        std::string operator()(const BlocksFreeMemory& one) const { return one.group.held.label; }

        std::string operator()(const HoldsMost& one) const { return one.place.held.label; }

        std::string operator()(const HeldOutside& one) const {
            return one.inside ? one.inside->place.held.label : std::string();
        }

        std::string operator()(const GrowsEachIteration& one) const { return one.place.held.label; }

        std::string operator()(const MadePoolGrow& one) const { return one.line; }

        std::string operator()(const FreeElsewhere& one) const {
            return one.keeper ? one.keeper->held.label : std::string();
        }

        std::string operator()(const CachedByPool& /*cache*/) const { return {}; }

        std::string operator()(const EarlierModel& one) const { return one.place.held.label; }
    };

    return std::visit(Line(), culprit);
}

}  // namespace

std::string outcome_text(RequestOutcome outcome) {
    switch (outcome) {
        case RequestOutcome::kRetry:
            return "retry";
        case RequestOutcome::kLibraryRefused:
            return "out of memory outside the pool";
        case RequestOutcome::kCallOutOfMemory:
            return "call failed for lack of memory";
        case RequestOutcome::kOutOfMemory:
        case RequestOutcome::kNone:
            break;
    }
    return "out of memory";
}

void add_diagnosis(const Analysis& analysis,
                   const DeviceAnalysis& device,
                   const Diagnosis& diagnosis,
                   std::vector<PerfettoFile::Argument>* arguments) {
    const Verdict& verdict = diagnosis.verdict;
    const bool retry = diagnosis.trouble.outcome == Outcome::kRetryOk;
    arguments->push_back({"verdict", std::string(verdict.id)});
    arguments->push_back({"in words", failure_sentence(device, diagnosis)});
    const std::string line = line_of(retry ? culprit_of_retry(analysis, device, diagnosis)
                                           : culprit_of_failure(analysis, device, diagnosis));
    if (!line.empty()) {
        arguments->push_back({"line to look at", printable(line)});
    }
    arguments->push_back({"free_bytes", verdict.free_bytes});
    arguments->push_back({"largest_free_bytes", verdict.largest_hole_bytes});
    if (verdict.device_free_known()) {
        arguments->push_back({"device_free_bytes", verdict.device_free_bytes});
    }
}

}  // namespace fragtrace::analyzer
