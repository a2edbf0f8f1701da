// Rules that every placement must keep, checked in a slow and simple way.
#pragma once

#include "analyzer/plan/lifetimes.h"

#include <catch2/catch.hpp>

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

inline bool live_together(const Lifetime& a, const Lifetime& b) {
    return a.begin < b.end && b.begin < a.end;
}

inline void check_no_overlap(const std::vector<Lifetime>& lifetimes,
                             const std::vector<std::uint64_t>& offsets) {
    REQUIRE(offsets.size() == lifetimes.size());
    for (std::size_t i = 0; i < lifetimes.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            const bool apart = offsets[i] >= offsets[j] + lifetimes[j].size_bytes ||
                               offsets[j] >= offsets[i] + lifetimes[i].size_bytes;
            if (live_together(lifetimes[i], lifetimes[j]) && !apart) {
                FAIL("buffers " << j << " and " << i << " share bytes");
            }
        }
    }
}

}  // namespace fragtrace::analyzer
