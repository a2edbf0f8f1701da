// Sizes of random requests: small ones, ones up to a segment's size, and large shares of the card.
#pragma once

#include "analyzer/support/units.h"

#include <cstdint>
#include <random>

namespace fragtrace::analyzer {

// At most `most_bytes`, or 24 MiB if that is less.
inline std::uint64_t random_bytes(std::mt19937* random, std::uint64_t most_bytes) {
    switch ((*random)() % 4) {
        case 0:
            return 1 + (*random)() % (64 * kKiB);
        case 1:
            return 1 + (*random)() % (2 * kMiB);
        case 2:
            return 1 + (*random)() % (24 * kMiB);
        default:
            return 1 + (*random)() % most_bytes;
    }
}

}  // namespace fragtrace::analyzer
