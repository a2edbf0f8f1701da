#include "analyzer/analysis/whatif/ranking.h"

#include "analyzer/analysis/whatif/row_costs.h"

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

// Prices (docs/metrics.md, Rank). A call is a line in a loop; a pool and another order need the
// lines that allocate, and are estimates. Every setting beyond the first is one more to keep right.
constexpr double kPriceOfACall = 0.1;
constexpr double kPriceOfAPool = 0.3;
constexpr double kPriceOfAnotherOrder = 0.5;
constexpr double kPriceOfASetting = 0.05;
constexpr double kMostPriceOfDriverCalls =
    0.45;  // of a short program they are many for each request
constexpr double kMostPrice = 1;
// Above 3, where half as much saved at the most price comes first; and so high that nobody is told
// to do without a cache for less than a fifth of the memory.
constexpr double kPriceOfCachingOff = 9;

std::uint64_t reserved(const WhatIfRow& row) {
    return row.result.statistics.reserved.peak;
}

std::uint64_t weighted_reserved(const WhatIfRow& row) {
    const std::uint64_t retries = row.ooms() == 0 ? std::min(row.retries(), kMostRetries) : 0;
    return reserved(row) + reserved(row) / kPartOfARetry * retries;
}

double price_of_code(const Candidate& candidate) {
    double price = 0;
    switch (candidate.remedy) {
        case Remedy::kEmptyCache:
            price = kPriceOfACall;
            break;
        case Remedy::kOwnPool:
            price = kPriceOfAPool;
            break;
        case Remedy::kMoveFirst:
            price = kPriceOfAnotherOrder;
            break;
        default:
            break;
    }
    const auto more = std::count(candidate.config.begin(), candidate.config.end(), ',');
    return price + kPriceOfASetting * static_cast<double>(more);
}

double more(std::uint64_t now, std::uint64_t before) {
    return now > before ? static_cast<double>(now - before) : 0;
}

// Bytes saved for their price; negative: so much more is reserved, and paid for beside. Where the
// record ran out of memory, what it had reserved is no measure: whatever avoids that saves the
// same, and what the row needs counts.
double worth(const WhatIfRow& row, const WhatIfRow& recorded) {
    if (recorded.ooms() != 0) {
        return -static_cast<double>(weighted_reserved(row)) * (1 + price_of(row, recorded));
    }
    const double saved = static_cast<double>(weighted_reserved(recorded)) -
                         static_cast<double>(weighted_reserved(row));
    const double factor = 1 + price_of(row, recorded);
    return saved > 0 ? saved / factor : saved * factor;
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

double price_of(const WhatIfRow& row, const WhatIfRow& recorded) {
    if (row.candidate.remedy == Remedy::kCachingOff) {
        return kPriceOfCachingOff;
    }
    const double calls = more(row.result.statistics.segments_allocated,
                              recorded.result.statistics.segments_allocated) +
                         more(synchronisations(row), synchronisations(recorded));
    const auto requests =
        static_cast<double>(std::max<std::uint64_t>(1, recorded.result.requests_served));
    return std::min(
        kMostPrice,
        price_of_code(row.candidate) + std::min(kMostPriceOfDriverCalls, calls / requests));
}

bool is_worth_its_price(const WhatIfRow& row, const WhatIfRow& recorded) {
    return change_of(row, recorded) == Change::kHelps &&
           (failures(row) < failures(recorded) ||
            worth(row, recorded) >= static_cast<double>(reserved(recorded) / kGreatPart));
}

bool is_better(const WhatIfRow& row, const WhatIfRow& other, const WhatIfRow& recorded) {
    if (failures(row) != failures(other)) {
        return failures(row) < failures(other);
    }
    return worth(row, recorded) >
           worth(other, recorded) + static_cast<double>(reserved(other) / kBetterPart);
}

bool ranks_before(const WhatIfRow& a, const WhatIfRow& b, const WhatIfRow& recorded) {
    const auto key = [&recorded](const WhatIfRow& row) {
        const std::string& config = row.candidate.config;
        // Where the record failed, whatever avoids that saves the same.
        const bool uncached = row.candidate.remedy == Remedy::kCachingOff;
        return std::tuple(failures(row),
                          uncached && recorded.ooms() != 0,
                          -worth(row, recorded),
                          uncached,
                          std::count(config.begin(), config.end(), ','),
                          row.result.statistics.segments_allocated);
    };
    return key(a) < key(b);
}

void rank(std::vector<WhatIfRow>* rows, const WhatIfRow& recorded) {
    const WhatIfRow against = recorded;  // it may be one of those that are moved
    std::stable_sort(rows->begin(), rows->end(), [&](const WhatIfRow& a, const WhatIfRow& b) {
        return ranks_before(a, b, against);
    });
}

}  // namespace fragtrace::analyzer
