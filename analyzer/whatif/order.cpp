#include "analyzer/whatif/order.h"

#include <algorithm>
#include <string>
#include <tuple>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kPageBytes = std::uint64_t{2} << 20;
constexpr std::uint64_t kGreatPart = 50;      // 2 %
constexpr std::uint64_t kBetterPart = 200;    // 0.5 %
constexpr std::uint64_t kMostRetries = 100;   // more do not count
constexpr std::uint64_t kPartOfARetry = 100;  // 1 %

std::uint64_t reserved(const WhatIfRow& row) {
    return row.result.statistics.reserved.peak;
}

std::uint64_t weighted_reserved(const WhatIfRow& row) {
    const std::uint64_t retries = row.ooms() == 0 ? std::min(row.retries(), kMostRetries) : 0;
    return reserved(row) + reserved(row) / kPartOfARetry * retries;
}

// What a program that does not catch it gets to see: it ends where it went on in the record.
std::tuple<bool, std::uint64_t> failures(const WhatIfRow& row) {
    return {row.fails_first(), row.ooms()};
}

}  // namespace

Change change_of(const WhatIfRow& row, const WhatIfRow& recorded) {
    // Up to its first out-of-memory the replay is what would have happened, and no further: of two
    // that fail where the record did not nothing can be said.
    if (row.fails_first()) {
        return recorded.fails_first() ? Change::kNothing : Change::kHurts;
    }
    if (failures(row) != failures(recorded)) {
        return failures(row) < failures(recorded) ? Change::kHelps : Change::kHurts;
    }
    const std::uint64_t now = weighted_reserved(row);
    const std::uint64_t before = weighted_reserved(recorded);
    const bool saves = now < before;
    const std::uint64_t difference = saves ? before - now : now - before;
    const bool as_many_retries = row.ooms() != 0 || row.retries() == recorded.retries();
    if (difference == 0 || (difference < kPageBytes && as_many_retries) ||
        (saves && row.ooms() != 0)) {
        return Change::kNothing;
    }
    const bool little = difference < reserved(recorded) / kGreatPart;
    if (saves) {
        return little ? Change::kHelpsALittle : Change::kHelps;
    }
    return little ? Change::kHurtsALittle : Change::kHurts;
}

bool is_better(const WhatIfRow& row, const WhatIfRow& other) {
    if (failures(row) != failures(other)) {
        return failures(row) < failures(other);
    }
    return weighted_reserved(row) + reserved(other) / kBetterPart < weighted_reserved(other);
}

bool ranks_before(const WhatIfRow& a, const WhatIfRow& b) {
    const auto key = [](const WhatIfRow& row) {
        const std::string& config = row.candidate.config;
        return std::tuple(failures(row),
                          weighted_reserved(row),
                          std::count(config.begin(), config.end(), ','),
                          row.result.statistics.segments_allocated);
    };
    return key(a) < key(b);
}

void rank(std::vector<WhatIfRow>* rows) {
    std::stable_sort(rows->begin(), rows->end(), ranks_before);
}

}  // namespace fragtrace::analyzer
