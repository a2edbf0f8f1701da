// A hash that identifies shared memory across the traces of one machine.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace fragtrace::preload {

// FNV-1a, 64 bits.
inline uint64_t hash_bytes(const void* bytes, size_t count) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < count; ++i) {
        hash = (hash ^ static_cast<const unsigned char*>(bytes)[i]) * 0x100000001b3u;
    }
    return hash;
}

// Returns the hash of a shareable handle. A file descriptor has a different number in each process
// and nothing else identifies its memory: its hash is 0.
inline uint64_t hash_of_shared(const void* shared, int handle_type) {
    constexpr int kFabric = 8;  // CU_MEM_HANDLE_TYPE_FABRIC
    constexpr size_t kFabricBytes = 64;
    return handle_type == kFabric && shared != nullptr ? hash_bytes(shared, kFabricBytes) : 0;
}

}  // namespace fragtrace::preload
