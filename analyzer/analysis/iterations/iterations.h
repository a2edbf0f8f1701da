// Finds where the iterations of a run begin: from its recurring phases, else from its requests.
// docs/metrics.md, Iterations, has the rules. If only windows of a trace were read, iterations are
// those of the last one: between windows an unknown number is missing.
#pragma once

#include "analyzer/analysis/iterations/requests.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

struct Iterations {
    enum class Source : std::uint8_t { kNone, kPhases, kRecurrence };

    Source source = Source::kNone;
    std::string phase;               // kPhases: the name, with "#" for numbers
    OriginId anchor = 0;             // kRecurrence: its requests begin the iterations
    std::vector<EventIndex> begins;  // ascending; the last iteration lasts to the end of the trace
    // Share of requests that also occur in the iteration before or after: with the same stack, and
    // with the same stack and size. Measured over the last 2^20 requests.
    double match_rate = 0;
    double size_match_rate = 0;

    [[nodiscard]] bool found() const { return source != Source::kNone; }

    // Number of the event's iteration, from 1; 0 = before the first.
    [[nodiscard]] std::size_t of(EventIndex event) const;
};

// "none", "phases" or "recurrence".
const char* source_name(Iterations::Source source);

Iterations find_iterations(const Timeline& timeline, const Requests& requests);

}  // namespace fragtrace::analyzer
