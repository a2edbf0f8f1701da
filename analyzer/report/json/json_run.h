// The parts of the JSON that are about the run as a whole.
#pragma once

#include "analyzer/analysis/analysis.h"

#include <nlohmann/json_fwd.hpp>

namespace fragtrace::analyzer {

nlohmann::ordered_json phases_json(const Analysis& analysis);
nlohmann::ordered_json calls_json(const Analysis& analysis);
nlohmann::ordered_json memory_json(const Analysis& analysis);
// Calls that are no allocations: as out-of-memories, without a verdict.
nlohmann::ordered_json failed_call_json(const Analysis& analysis, const CallOutOfMemory& call);
nlohmann::ordered_json recording_json(const Analysis& analysis);
// Of the stacks that were asked for so far.
nlohmann::ordered_json symbols_json(const Analysis& analysis);
nlohmann::ordered_json facts_json(const Analysis& analysis);
nlohmann::ordered_json stack_json(const Analysis& analysis, OriginId origin);
// What getting the memory took in driver calls; 0 = not known.
std::uint64_t retry_ns(const Analysis& analysis, EventIndex event);
std::string phase_name(const Analysis& analysis, EventIndex event);

}  // namespace fragtrace::analyzer
