// Where the iterations of a run begin: from its phases if it marks any that recur, else from the
// record itself. docs/metrics.md, Iterations, has the rules.
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
    std::string phase;               // kPhases: the name, numbers in it as "#"
    OriginId anchor = 0;             // kRecurrence: whose request is an iteration's first
    std::vector<EventIndex> begins;  // ascending; the last iteration goes on to the trace's end
    // Share of the requests whose stack, and whose stack and size, occur in the iteration before
    // or after as well. Measured over the last million requests.
    double match_rate = 0;
    double size_match_rate = 0;

    [[nodiscard]] bool found() const { return source != Source::kNone; }

    // From 1; 0 = before the first.
    [[nodiscard]] std::size_t of(EventIndex event) const;
};

Iterations find_iterations(const Timeline& timeline, const Requests& requests);

}  // namespace fragtrace::analyzer
