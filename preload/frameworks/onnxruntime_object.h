// What the recorder reads of an arena of ONNX Runtime (onnxruntime::BFCArena): its name and its
// settings, from the object, and its statistics.
#pragma once

#include <stdint.h>

namespace fragtrace::preload {

// onnxruntime::AllocatorStats, with room for members of later releases.
struct ArenaStats {
    int64_t requests;
    int64_t reserves;
    int64_t extensions;
    int64_t shrinkages;
    int64_t bytes_in_use;
    int64_t unused;
    int64_t total_bytes;  // of regions and reserves
    int64_t more[57];
};

// The arena's name if it is one for memory of CUDA ("Cuda", "CudaPinned"), else nullptr. It lives
// as long as the arena.
const char* name_of_cuda_arena(const void* arena);

// Records limit and settings of the pool's arena, whose statistics are `stats`. Records nothing if
// the object does not have them where release 1.31 has them.
void record_arena_settings(uint32_t pool, const void* arena, const ArenaStats& stats);

}  // namespace fragtrace::preload
