// How certain a figure of a replay is, and the words for it. The text, the JSON and the page all
// take them from here (docs/metrics.md, Classes).
#pragma once

#include "analyzer/model/event.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

enum class RowClass : std::uint8_t { kExact, kBound, kEstimate };

// How a bound limits the true value.
enum class BoundKind : std::uint8_t {
    kNone,          // the class is not a bound
    kUntilFailure,  // exact up to a request that fails here and succeeded in the recorded run
    kAtLeast,       // the true figure is this or larger
    kAtMost,        // the true figure is this or smaller
};

// For programs: "exact", "bound", "estimate".
std::string_view row_class_name(RowClass row_class);
// For programs: "", "until_failure", "at_least", "at_most".
std::string_view bound_kind_name(BoundKind kind);

// For people: "exact", "at least", "at most", "estimate", or "exact until its out-of-memory at
// event 12". `until` is that event; kNoEvent leaves it out.
std::string class_words(RowClass row_class, BoundKind kind, EventIndex until = kNoEvent);

// Each of these words with its meaning in a sentence.
const std::vector<std::pair<std::string, std::string>>& class_meanings();

}  // namespace fragtrace::analyzer
