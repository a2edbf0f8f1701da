#include "analyzer/analysis/whatif/row_class.h"

#include <fmt/format.h>

namespace fragtrace::analyzer {

std::string_view row_class_name(RowClass row_class) {
    switch (row_class) {
        case RowClass::kExact:
            return "exact";
        case RowClass::kBound:
            return "bound";
        case RowClass::kEstimate:
            return "estimate";
    }
    return "estimate";
}

std::string_view bound_kind_name(BoundKind kind) {
    switch (kind) {
        case BoundKind::kNone:
            return "";
        case BoundKind::kUntilFailure:
            return "until_failure";
        case BoundKind::kAtLeast:
            return "at_least";
        case BoundKind::kAtMost:
            return "at_most";
    }
    return "";
}

std::string class_words(RowClass row_class, BoundKind kind, EventIndex until) {
    if (row_class != RowClass::kBound) {
        return std::string(row_class_name(row_class));
    }
    switch (kind) {
        case BoundKind::kAtLeast:
            return "at least";
        case BoundKind::kAtMost:
            return "at most";
        case BoundKind::kNone:
        case BoundKind::kUntilFailure:
            break;
    }
    return until == kNoEvent ? std::string("exact until its out-of-memory")
                             : fmt::format("exact until its out-of-memory at event {}", until);
}

const std::vector<std::pair<std::string, std::string>>& class_meanings() {
    static const std::vector<std::pair<std::string, std::string>> meanings = {
        {"exact", "what the allocator would have done with the recorded requests"},
        {"exact until",
         "exact up to a request that fails here and was served in the recorded run; what the "
         "program does after it is not known"},
        {"at least",
         "the true figure is this or larger: the recorded run ended at an out-of-memory, and what "
         "would come after it is not in the trace; or no allocator needs less"},
        {"at most", "it can be no more than this; the row's note says why"},
        {"estimate", "something had to be assumed; the row's note says what"},
    };
    return meanings;
}

}  // namespace fragtrace::analyzer
