#include "hooks/pools_cuda.h"

#include "recorder/numbered_names.h"
#include "system/losses.h"

namespace fragtrace::preload {
namespace {

constexpr int kAttributeReserved = 5;  // CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT
constexpr int kAttributeUsed = 7;      // CU_MEMPOOL_ATTR_USED_MEM_CURRENT

struct Known {
    const void* pool;  // nullptr = free
    uint16_t device;
};

constexpr int kMaxKnown = 256;
Known g_known[kMaxKnown];
int g_selected;

Known* find_known(const void* pool) {
    for (Known& known : g_known) {
        if (__atomic_load_n(&known.pool, __ATOMIC_ACQUIRE) == pool) {
            return &known;
        }
    }
    return nullptr;
}

const void* pool_of_device(uint16_t device, const Call& call) {
    CUmemoryPool pool = nullptr;
    auto* get = real<Hook::k_cuDeviceGetMemPool>(call.caller());
    return get != nullptr && device != kDeviceUnknown && get(&pool, device) == kSuccess ? pool
                                                                                        : nullptr;
}

bool is_default_pool(const void* pool, int device, const Call& call) {
    CUmemoryPool found = nullptr;
    auto* get = real<Hook::k_cuDeviceGetDefaultMemPool>(call.caller());
    return get != nullptr && get(&found, device) == kSuccess && found == pool;
}

}  // namespace

void note_pool(const void* pool, uint16_t device) {
    for (Known& known : g_known) {
        const void* expected = nullptr;
        if (__atomic_load_n(&known.pool, __ATOMIC_RELAXED) == nullptr &&
            __atomic_compare_exchange_n(
                &known.pool, &expected, pool, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            __atomic_store_n(&known.device, device, __ATOMIC_RELEASE);
            return;
        }
    }
    count_up(&g_entries_without_room);
}

void forget_pool(const void* pool) {
    Known* known = find_known(pool);
    if (known != nullptr) {
        __atomic_store_n(&known->pool, nullptr, __ATOMIC_RELEASE);
    }
}

CudaPool find_pool(const void* pool, const Call& call) {
    const Known* known = find_known(pool);
    if (known != nullptr) {
        return {pool_number(PoolOwner::kCuda, number(pool), 0),
                __atomic_load_n(&known->device, __ATOMIC_ACQUIRE)};
    }
    int count = 0;
    auto* get_count = real<Hook::k_cuDeviceGetCount>(call.caller());
    if (get_count == nullptr || get_count(&count) != kSuccess) {
        count = 0;
    }
    for (int device = 0; device < count; ++device) {
        if (is_default_pool(pool, device, call)) {
            return {0, ordinal(device)};
        }
    }
    return {pool_number(PoolOwner::kCuda, number(pool), 0), kDeviceUnknown};
}

void note_pool_selected() {
    __atomic_store_n(&g_selected, 1, __ATOMIC_RELEASE);
}

uint32_t current_pool(uint16_t device, const Call& call) {
    if (__atomic_load_n(&g_selected, __ATOMIC_ACQUIRE) == 0) {
        return 0;
    }
    const void* pool = pool_of_device(device, call);
    return pool == nullptr ? 0 : find_pool(pool, call).number;
}

uint64_t record_pool_info(const void* pool, const Call& call) {
    uint64_t used = 0;
    uint64_t reserved = 0;
    auto* get = real<Hook::k_cuMemPoolGetAttribute>(call.caller());
    auto* handle = const_cast<void*>(pool);
    if (get == nullptr || handle == nullptr || get(handle, kAttributeUsed, &used) != kSuccess ||
        get(handle, kAttributeReserved, &reserved) != kSuccess) {
        return kUnknown64;
    }
    const CudaPool found = find_pool(pool, call);
    EventRecord record{};
    record.kind = EventKind::kPoolInfo;
    record.device = found.device;
    record.pool = found.number;
    record.address = number(pool);
    record.size = used;
    record.extra = reserved;
    record.stream = kStreamUnknown;
    record.flags = kFlagByPool;
    fragtrace::preload::record(record);
    return reserved;
}

void record_current_pool_info(uint16_t device, const Call& call) {
    (void)record_pool_info(pool_of_device(device, call), call);
}

}  // namespace fragtrace::preload
