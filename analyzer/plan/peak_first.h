// Placement around the peak: first the buffers of the moment at which most is live, the longest
// lifetime at the bottom, then those of the next highest moment around them, and so on.
//
// Moments with little live come last and find room anywhere; what decides the height is placed
// while everything is still free. Each buffer goes as low as it can.
#pragma once

#include "analyzer/plan/lifetimes.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace fragtrace::analyzer {

// The buffers that need a place by the most that is ever live during their lifetime, highest first;
// among equals the longest lifetime first, then the earlier born.
std::vector<std::uint32_t> order_by_peak(std::span<const Lifetime> lifetimes,
                                         std::span<const Turn> turns);

// Steps of about a nanosecond or two that place_peak_first takes at most, unless told otherwise.
inline constexpr std::uint64_t kPeakFirstWork = 1'000'000'000;
inline constexpr std::uint64_t kPeakFirstWorkPerBuffer = 2000;

// Fills `offsets` (one per buffer) and returns the height. None: it would be too much work, as
// where very many buffers lie with gaps between them; `offsets` are then of no use.
std::optional<std::uint64_t> place_peak_first(std::span<const Lifetime> lifetimes,
                                              std::span<const Turn> turns,
                                              std::vector<std::uint64_t>* offsets,
                                              std::optional<std::uint64_t> work = {});

}  // namespace fragtrace::analyzer
