// The number and device of each driver memory pool (stream-ordered memory), by handle.
//
// Thread-safe without locks. If the fixed table is full, a further pool has its number, but no
// device.
#pragma once

#include "hooks/hook_call.h"

namespace fragtrace::preload {

struct CudaPool {
    uint32_t number;  // as in events; 0 = the default pool of a device
    uint16_t device;  // kDeviceUnknown if unknown
};

// Called when the program creates or imports a pool, and when the pool ends.
void note_pool(const void* pool, uint16_t device);
void forget_pool(const void* pool);

CudaPool find_pool(const void* pool, const Call& call);

// Called when the program has selected a non-default pool for some device.
void note_pool_selected();

// Returns the number of the pool that serves allocations without a pool.
uint32_t current_pool(uint16_t device, const Call& call);

// Records the sizes of the pool that the driver reports. Returns the pool's reserved bytes,
// kUnknown64 if the driver does not report them.
uint64_t record_pool_info(const void* pool, const Call& call);

// The same for the device's current pool.
void record_current_pool_info(uint16_t device, const Call& call);

}  // namespace fragtrace::preload
