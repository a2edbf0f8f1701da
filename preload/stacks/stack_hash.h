// The hash of a stack, added up frame by frame.
#pragma once

#include <stdint.h>

namespace fragtrace::preload {

// `i` counts from the innermost frame. The hash without frames is 0. The hash is a sum, so that the
// processor can compute the terms in parallel.
inline uint64_t add_frame_to_hash(uint64_t hash, uint64_t frame, uint32_t i) {
    return hash + (frame + i) * (0x9e3779b97f4a7c15u + 2 * uint64_t{i});
}

inline uint64_t finish_hash(uint64_t hash) {
    hash ^= hash >> 32;
    hash *= 0xd6e8feb86659fd93u;
    return hash ^ (hash >> 29);
}

}  // namespace fragtrace::preload
