#include "analyzer/analysis/whatif/ranking.h"

#include "analyzer/analysis/whatif/row_costs.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <string>
#include <tuple>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kGreatPart = 50;      // 2 %
constexpr std::uint64_t kBetterPart = 200;    // 0.5 %
constexpr std::uint64_t kMostRetries = 100;   // more retries count no further
constexpr std::uint64_t kPartOfARetry = 100;  // a retry counts as 1 % of the reserved bytes

// Prices of changes (docs/metrics.md, Rank). empty_cache() is one line in a loop. A pool, or
// another order, needs changes where memory is allocated, and its row is an estimate. Each setting
// beyond the first is one more to maintain.
constexpr double kPriceOfACall = 0.1;
constexpr double kPriceOfAPool = 0.3;
constexpr double kPriceOfAnotherOrder = 0.5;
constexpr double kPriceOfASetting = 0.05;
constexpr double kMostPriceOfDriverCalls =
    0.45;  // limited, since a short program has many driver calls per request
constexpr double kMostPrice = 1;
// Above 3, so that a row which saves half as much at the highest price comes first. This high, so
// that caching off is recommended only if it saves at least a fifth of the memory.
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

// Bytes saved, divided by the price plus one. If the row needs more memory: the extra bytes,
// negative, times the price plus one. If the recorded run ran out of memory, its reserved bytes are
// no measure: every row that avoids this saves the same. Then the bytes that the row needs count.
double worth(const WhatIfRow& row, const WhatIfRow& recorded) {
    if (recorded.ooms() != 0) {
        return -static_cast<double>(weighted_reserved(row)) * (1 + price_of(row, recorded));
    }
    const double saved = static_cast<double>(weighted_reserved(recorded)) -
                         static_cast<double>(weighted_reserved(row));
    const double factor = 1 + price_of(row, recorded);
    return saved > 0 ? saved / factor : saved * factor;
}

// A row with as many failures is better than `other` if it is worth more than this.
double least_worth_of_better(const WhatIfRow& other, const WhatIfRow& recorded) {
    return worth(other, recorded) + static_cast<double>(reserved(other) / kBetterPart);
}

// The failures that a program without an OOM handler experiences. First: it ends at a request that
// succeeded in the recorded run.
std::tuple<bool, std::uint64_t> failures(const WhatIfRow& row) {
    return {row.fails_first(), row.ooms()};
}

}  // namespace

Change change_of(const WhatIfRow& row, const WhatIfRow& recorded) {
    // The replay is exact only up to its first out-of-memory. Two rows that both fail where the
    // recorded run did not cannot be compared.
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
    if (difference == 0 || (difference < kDriverPageBytes && as_many_retries) ||
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
    return worth(row, recorded) > least_worth_of_better(other, recorded);
}

std::uint64_t most_reserved_if_better(const WhatIfRow& other, const WhatIfRow& recorded) {
    constexpr auto kNoLimit = ~std::uint64_t{0};
    if (failures(other) != std::tuple(false, std::uint64_t{0})) {
        return kNoLimit;
    }
    // No price is negative and no retry lowers the weighted bytes. So worth() is at most this start
    // minus the reserved bytes.
    const double start =
        recorded.ooms() != 0 ? 0 : static_cast<double>(weighted_reserved(recorded));
    const double most = start - least_worth_of_better(other, recorded);
    constexpr double kMostExact = 1e15;  // doubles count bytes exactly up to here
    return most < 0 ? 0 : most < kMostExact ? static_cast<std::uint64_t>(most) + 1 : kNoLimit;
}

bool ranks_before(const WhatIfRow& a, const WhatIfRow& b, const WhatIfRow& recorded) {
    const auto key = [&recorded](const WhatIfRow& row) {
        const std::string& config = row.candidate.config;
        // If the recorded run failed, any other change comes before caching off.
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
    // A copy, since `recorded` may be one of the rows that are moved.
    const WhatIfRow against = recorded;
    std::stable_sort(rows->begin(), rows->end(), [&](const WhatIfRow& a, const WhatIfRow& b) {
        return ranks_before(a, b, against);
    });
}

}  // namespace fragtrace::analyzer
