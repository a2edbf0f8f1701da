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
        {"exact", "what the allocator does with the recorded requests"},
        {"exact until",
         "exact up to a request that fails here and succeeded in the recorded run; what the "
         "program does next is unknown"},
        {"at least", "the true value is this or larger; the row's note says why"},
        {"at most", "the true value is this or smaller; the row's note says why"},
        {"estimate", "depends on an assumption; the row's note says which"},
    };
    return meanings;
}

}  // namespace fragtrace::analyzer
