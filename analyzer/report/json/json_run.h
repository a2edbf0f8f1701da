// The JSON of the run as a whole.
#pragma once

#include "analyzer/analysis/analysis.h"

#include <nlohmann/json_fwd.hpp>

namespace fragtrace::analyzer {

nlohmann::ordered_json phases_json(const Analysis& analysis);
nlohmann::ordered_json calls_json(const Analysis& analysis);
nlohmann::ordered_json memory_json(const Analysis& analysis);
// A failed call that is not an allocation. Same keys as an out-of-memory, without a verdict.
nlohmann::ordered_json failed_call_json(const Analysis& analysis, const CallOutOfMemory& call);
// Failed requests of a device whose reserved memory the input does not show. They are not judged.
nlohmann::ordered_json failed_requests_json(const Analysis& analysis, const DeviceAnalysis& device);
nlohmann::ordered_json recording_json(const Analysis& analysis);
// Covers only the stacks that were written so far, so call it last.
nlohmann::ordered_json symbols_json(const Analysis& analysis);
nlohmann::ordered_json facts_json(const Analysis& analysis);
nlohmann::ordered_json stack_json(const Analysis& analysis, OriginId origin);
// Time in nanoseconds that a retried request spent in driver calls; 0 = unknown.
std::uint64_t retry_ns(const Analysis& analysis, EventIndex event);
std::string phase_name(const Analysis& analysis, EventIndex event);

}  // namespace fragtrace::analyzer
