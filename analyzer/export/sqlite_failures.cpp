#include "analyzer/export/sqlite_failures.h"

#include "analyzer/analysis/culprit.h"
#include "analyzer/analysis/verdict/verdict_text.h"
#include "analyzer/report/text/conclusion_text.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

namespace fragtrace::analyzer {
namespace {

// The columns of a failure that its event does not determine. What stays empty is not known.
struct Failure {
    EventIndex event = kNoEvent;
    const char* kind = "";
    std::optional<std::uint64_t> requested_bytes = {};
    std::optional<std::string_view> requester = {};
    std::optional<std::string_view> verdict = {};
    std::optional<std::string> sentence = {};
    std::optional<bool> despite_free_memory = {};
    std::optional<std::uint64_t> rounded_bytes = {};
    std::optional<std::uint64_t> free_bytes = {};
    std::optional<std::uint64_t> largest_free_bytes = {};
    std::optional<std::uint64_t> largest_usable_bytes = {};
    std::optional<std::uint64_t> device_free_bytes = {};
    std::optional<std::uint64_t> allocated_bytes = {};
    std::optional<std::uint64_t> reserved_bytes = {};
    std::optional<std::uint64_t> released_bytes = {};
    std::string culprit = {};
};

class FailureTables {
  public:
    FailureTables(const Analysis& analysis, const SqliteKeys& keys, SqliteFile* file)
        : analysis_(analysis), keys_(keys), rows_(file, "failures"), culprits_(file, "culprits") {}

    void add_device(const DeviceAnalysis& device) {
        for (const Diagnosis& diagnosis : device.diagnoses) {
            add_diagnosis(device, diagnosis);
        }
        for (const RecordedTrouble& trouble : device.recorded_troubles) {
            // Failed calls have rows of their own. They request no memory.
            const EventTable& events = analysis_.timeline.events;
            const bool is_call = events.kind(trouble.event) == EventKind::kCallOutOfMemory;
            const bool diagnosed = std::any_of(
                device.diagnoses.begin(), device.diagnoses.end(), [&](const Diagnosis& one) {
                    return one.trouble.event == trouble.event;
                });
            if (!diagnosed && !is_call) {
                add({.event = trouble.event,
                     .kind = trouble.retry ? "retry" : "out_of_memory",
                     .requested_bytes = events[trouble.event].size_bytes},
                    device.device);
            }
        }
    }

    void add_call(const CallOutOfMemory& call) {
        const auto if_known = [&call](auto figure) {
            return call.device_known ? std::optional(figure) : std::nullopt;
        };
        add({.event = call.event,
             .kind = "call_out_of_memory",
             .requester = call.function,
             .despite_free_memory = if_known(call.free_bytes != 0),
             .free_bytes = if_known(call.free_bytes),
             .largest_free_bytes = if_known(call.largest_free_bytes),
             .device_free_bytes = call.device_free_bytes,
             .allocated_bytes = if_known(call.allocated_bytes),
             .reserved_bytes = if_known(call.reserved_bytes)},
            SqliteKeys::device_if_any(analysis_.timeline.events[call.event]));
    }

  private:
    void add_diagnosis(const DeviceAnalysis& device, const Diagnosis& diagnosis) {
        const Verdict& verdict = diagnosis.verdict;
        const bool retry = diagnosis.trouble.outcome == Outcome::kRetryOk;
        for (const CulpritGroup& group : group_culprits(analysis_, diagnosis, false)) {
            culprits_.add(failures_,
                          group.held.label,
                          group.held_open_bytes,
                          group.held.bytes,
                          group.held.blocks);
        }
        add({.event = diagnosis.trouble.event,
             .kind = retry ? "retry" : "out_of_memory",
             .requested_bytes = verdict.requested_bytes,
             .requester = verdict.requester,
             .verdict = verdict.id,
             .sentence = failure_sentence(device, diagnosis),
             .despite_free_memory = verdict.despite_free_memory(),
             .rounded_bytes = verdict.rounded_bytes,
             .free_bytes = verdict.free_bytes,
             .largest_free_bytes = verdict.largest_hole_bytes,
             .largest_usable_bytes = verdict.largest_free_bytes,
             .device_free_bytes = verdict.device_free_known()
                                      ? std::optional(verdict.device_free_bytes)
                                      : std::nullopt,
             .allocated_bytes = verdict.allocated_bytes,
             .reserved_bytes = verdict.reserved_bytes,
             .released_bytes = retry ? std::optional(diagnosis.released_bytes) : std::nullopt,
             .culprit = culprit_text(retry ? culprit_of_retry(analysis_, device, diagnosis)
                                           : culprit_of_failure(analysis_, device, diagnosis))},
            device.device);
    }

    void add(const Failure& failure, std::optional<DeviceId> device) {
        const Event event = analysis_.timeline.events[failure.event];
        rows_.add(failures_++,
                  device,
                  failure.event,
                  event.time_ns,
                  failure.kind,
                  failure.requested_bytes,
                  keys_.stack_of(event.origin),
                  keys_.phase_of(failure.event),
                  keys_.step_of(event.device, failure.event),
                  failure.requester,
                  failure.verdict,
                  failure.sentence,
                  failure.despite_free_memory,
                  failure.rounded_bytes,
                  failure.free_bytes,
                  failure.largest_free_bytes,
                  failure.largest_usable_bytes,
                  failure.device_free_bytes,
                  failure.allocated_bytes,
                  failure.reserved_bytes,
                  failure.released_bytes,
                  if_any(failure.culprit));
    }

    const Analysis& analysis_;
    const SqliteKeys& keys_;
    SqliteRows rows_;
    SqliteRows culprits_;
    std::size_t failures_ = 0;
};

}  // namespace

void add_failures(const Analysis& analysis, const SqliteKeys& keys, SqliteFile* file) {
    FailureTables tables(analysis, keys, file);
    for (const DeviceAnalysis& device : analysis.devices) {
        tables.add_device(device);
    }
    for (const CallOutOfMemory& call : analysis.run.call_ooms) {
        tables.add_call(call);
    }
}

}  // namespace fragtrace::analyzer
