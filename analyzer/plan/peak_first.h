// Placement that starts at the peak. It places the buffers of the moment with the most live bytes
// first, the longest lifetime at the bottom. Then it places the buffers of the next highest moment
// around them, and so on.
//
// The buffers that decide the height are placed while all space is free. Buffers of moments with
// few live bytes come last and find space easily. Each buffer gets the lowest possible offset.
#pragma once

#include "analyzer/plan/lifetimes.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace fragtrace::analyzer {

// Sorts buffers by the maximum of live bytes during their lifetime, highest first. Ties: longer
// lifetime first, then earlier begin. Ignored buffers are left out.
std::vector<std::uint32_t> order_by_peak(std::span<const Lifetime> lifetimes,
                                         std::span<const Turn> turns);

// Default work limit of place_peak_first(): a constant plus an amount per buffer. One unit takes
// about 1 to 2 ns.
inline constexpr std::uint64_t kPeakFirstWork = 1'000'000'000;
inline constexpr std::uint64_t kPeakFirstWorkPerBuffer = 2000;

// Fills `offsets` (one per buffer) and returns the height in bytes. Returns nullopt if the work
// limit was reached, for example with very many buffers and gaps between them, and also as soon as
// the height reaches `below_bytes`. `offsets` are then unusable.
std::optional<std::uint64_t> place_peak_first(std::span<const Lifetime> lifetimes,
                                              std::span<const Turn> turns,
                                              std::vector<std::uint64_t>* offsets,
                                              std::optional<std::uint64_t> work = {},
                                              std::uint64_t below_bytes = ~std::uint64_t{0});

}  // namespace fragtrace::analyzer
