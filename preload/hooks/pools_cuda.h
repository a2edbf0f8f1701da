// The driver's pools of stream-ordered memory, as far as hooks have to know them: which number and
// device belong to a handle.
//
// Thread-safe without locks. A pool beyond the fixed table keeps its number and loses its device.
#pragma once

#include "hooks/hooks.h"

namespace fragtrace::preload {

struct CudaPool {
    uint32_t number;  // as events carry it; 0 = a device's default pool
    uint16_t device;  // kDeviceUnknown where it cannot be told
};

// A pool that the program has made or imported; and its end.
void note_pool(const void* pool, uint16_t device);
void forget_pool(const void* pool);

CudaPool find_pool(const void* pool, const Call& call);

// The program has chosen a pool other than the default one for some device.
void note_pool_selected();

// The pool that an allocation without a pool comes from.
uint32_t current_pool(uint16_t device, const Call& call);

// Records what the pool holds, as the driver tells it. kUnknown64 where it does not; else the bytes
// that the pool has reserved.
uint64_t record_pool_info(const void* pool, const Call& call);

// The same of the device's current pool.
void record_current_pool_info(uint16_t device, const Call& call);

}  // namespace fragtrace::preload
