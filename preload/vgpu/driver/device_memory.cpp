// Linear device memory, in pages of 2 MiB. Small requests share pages. Every request takes the
// lowest address that fits. No memory exists at these addresses. The limits 2 MiB, 1 MiB and 512 B
// are a guess, not measured on hardware.
#include "driver/state.h"

#include <sys/mman.h>

namespace fragtrace::vgpu {
namespace {

uint64_t stride() {
    return config().device_count <= kDevicesWithWideSpace ? kDeviceStride : kNarrowDeviceStride;
}

uint64_t base_of(int device) {
    return kDeviceBase + uint64_t(device) * stride();
}

int device_of(uint64_t address) {
    if (address < kDeviceBase || address >= kDeviceBase + kDeviceBytes) return -1;
    return int((address - kDeviceBase) / stride());
}

// Reserves the device's address range, so that no mapping of the host lands in it. If that fails
// (address space limit), only this protection is lost.
void reserve_range(int device) {
    static bool reserved[kMaxDevices];
    if (reserved[device]) return;
    reserved[device] = true;
    (void)mmap(reinterpret_cast<void*>(base_of(device)),
               stride(),
               PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
               -1,
               0);
}

Region* new_region(int device, uint64_t size, Pool* pool, Context* context) {
    Device& on = g_devices[device];
    const uint64_t limit = pool != nullptr ? pool->properties.maxSize : 0;
    if (limit != 0 && pool->reserved + size > limit) return nullptr;
    if (size > on.total_bytes || !take_bytes(on, size)) return nullptr;
    reserve_range(device);
    const uint64_t base = base_of(device);
    if (on.first_gap < base) on.first_gap = base;
    const uint64_t start = on.regions.first_fit(on.first_gap, base + stride(), size, kPageBytes);
    Region region{start, size, size, nullptr, pool, context, 0, false};
    Region* added = start != 0 ? on.regions.insert(region) : nullptr;
    if (added == nullptr) {
        give_bytes(on, size);
        return nullptr;
    }
    if (start == on.first_gap) on.first_gap = start + size;
    count_in(pool, int64_t(size), 0, 0);
    return added;
}

// Takes the lowest idle region of the pool that is large enough. The rest of the region stays idle.
Region* reuse_idle(int device, uint64_t size, Pool* pool) {
    Device& on = g_devices[device];
    if (pool == nullptr || on.idle_regions == 0) return nullptr;
    for (Region& region : on.regions) {
        if (!region.idle || region.pool != pool || region.size < size) continue;
        const uint64_t start = region.start;
        if (region.size > size) {
            Region rest = region;
            rest.start += size;
            rest.size -= size;
            region.size = size;  // set before insert(), which may move the elements
            if (on.regions.insert(rest) == nullptr) {
                on.regions.find_start(start)->size += rest.size;
                return nullptr;
            }
        } else {
            --on.idle_regions;
        }
        Region* found = on.regions.find_start(start);
        found->idle = false;
        found->requested = size;
        return found;
    }
    return nullptr;
}

Region* add_region(int device, uint64_t size, Pool* pool, Context* context) {
    Region* region = reuse_idle(device, size, pool);
    if (region == nullptr) region = new_region(device, size, pool, context);
    if (region == nullptr && pool != nullptr) {
        // idle regions are each too small, or they use the card's last bytes
        release_idle(pool, 0);
        region = new_region(device, size, pool, context);
    }
    return region;
}

void drop_region(int device, Region* region) {
    count_in(region->pool, -int64_t(region->size), 0, 0);
    Device& on = g_devices[device];
    give_bytes(on, region->size);
    if (region->start < on.first_gap) on.first_gap = region->start;
    if (region->idle) --on.idle_regions;
    free(region->slab);
    on.regions.erase(region);
}

// Handles a region without allocations: a pool keeps it and merges it with its idle neighbours.
// Without a pool it is released.
void vacate(int device, Region* region) {
    if (region->pool == nullptr) return drop_region(device, region);
    Device& on = g_devices[device];
    free(region->slab);
    region->slab = nullptr;
    region->idle = true;
    ++on.idle_regions;
    auto joins = [&](Region* low, Region* high) {
        return low >= on.regions.begin() && high < on.regions.end() && low->idle && high->idle &&
               low->pool == high->pool && low->start + low->size == high->start;
    };
    if (joins(region, region + 1)) {
        region->size += region[1].size;
        on.regions.erase(region + 1);
        --on.idle_regions;
    }
    if (joins(region - 1, region)) {
        region[-1].size += region->size;
        on.regions.erase(region);
        --on.idle_regions;
    }
}

void mark_units(Slab* slab, int first, int count, bool taken) {
    for (int unit = first; unit < first + count; ++unit) {
        const uint64_t bit = uint64_t{1} << (unit % 64);
        if (taken) {
            slab->taken[unit / 64] |= bit;
        } else {
            slab->taken[unit / 64] &= ~bit;
        }
    }
    slab->units_free += taken ? -count : count;
}

// First fit: returns the lowest run of `count` free units, or -1. Words of 64 free units are
// counted in one step.
int first_run(const Slab& slab, int count) {
    int run = 0;
    for (int word = 0; word < Slab::kUnits / 64; ++word) {
        const uint64_t taken = slab.taken[word];
        if (taken == 0) {
            run += 64;
            if (run >= count) return word * 64 + 64 - run;
            continue;
        }
        for (int bit = 0; bit < 64; ++bit) {
            run = (taken >> bit & 1) != 0 ? 0 : run + 1;
            if (run == count) return word * 64 + bit + 1 - run;
        }
    }
    return -1;
}

int find_units(Slab* slab, int count) {
    if (slab->units_free < count || slab->longest_run < count) return -1;
    const int first = first_run(*slab, count);
    if (first < 0) slab->longest_run = count - 1;
    return first;
}

uint64_t carve(Region* region, int first, uint64_t bytes, int units) {
    mark_units(region->slab, first, units, true);
    region->slab->units_at[first] = uint16_t(units);
    region->slab->bytes_at[first] = uint32_t(bytes);
    count_in(region->pool, 0, int64_t(uint64_t(units) * kUnitBytes), 1);
    return region->start + uint64_t(first) * kUnitBytes;
}

CUresult allocate_small(
    int device, uint64_t bytes, Pool* pool, Context* context, CUdeviceptr* address) {
    const int units = int((bytes + kUnitBytes - 1) / kUnitBytes);
    for (Region& region : g_devices[device].regions) {
        if (region.slab == nullptr || region.pool != pool || region.context != context) continue;
        const int first = find_units(region.slab, units);
        if (first < 0) continue;
        *address = carve(&region, first, bytes, units);
        return CUDA_SUCCESS;
    }
    Slab* slab = static_cast<Slab*>(calloc(1, sizeof(Slab)));
    if (slab == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    Region* region = add_region(device, kPageBytes, pool, context);
    if (region == nullptr) {
        free(slab);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    slab->units_free = slab->longest_run = Slab::kUnits;
    region->slab = slab;
    *address = carve(region, 0, bytes, units);
    return CUDA_SUCCESS;
}

}  // namespace

CUresult allocate_device(
    int device, uint64_t bytes, Pool* pool, Context* context, CUdeviceptr* address) {
    if (bytes <= kSmallLimitBytes) return allocate_small(device, bytes, pool, context, address);
    if (bytes > kMaxCardBytes) return CUDA_ERROR_OUT_OF_MEMORY;
    Region* region = add_region(device, round_up(bytes, kPageBytes), pool, context);
    if (region == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    region->requested = bytes;
    count_in(pool, 0, int64_t(region->size), 1);
    *address = region->start;
    return CUDA_SUCCESS;
}

CUresult free_device(CUdeviceptr address) {
    const int device = device_of(address);
    if (device < 0) return CUDA_ERROR_INVALID_VALUE;
    Region* region = g_devices[device].regions.find(address);
    if (region == nullptr || region->idle) return CUDA_ERROR_INVALID_VALUE;
    Pool* pool = region->pool;
    if (region->slab == nullptr) {
        if (region->start != address) return CUDA_ERROR_INVALID_VALUE;
        count_in(pool, 0, -int64_t(region->size), -1);
        vacate(device, region);
    } else {
        const int unit = int((address - region->start) / kUnitBytes);
        const int units = region->slab->units_at[unit];
        if (address % kUnitBytes != 0 || units == 0) return CUDA_ERROR_INVALID_VALUE;
        region->slab->units_at[unit] = 0;
        mark_units(region->slab, unit, units, false);
        region->slab->longest_run = region->slab->units_free;
        count_in(pool, 0, -int64_t(uint64_t(units) * kUnitBytes), -1);
        if (region->slab->units_free == Slab::kUnits) vacate(device, region);
    }
    drop_if_over(pool);
    return CUDA_SUCCESS;
}

uint64_t export_id_of(CUdeviceptr address) {
    Region* region = g_devices[device_of(address)].regions.find(address);
    if (region->export_id == 0) region->export_id = g_next_id++;
    return region->export_id;
}

void free_device_of(int device, const Context* context) {
    SortedArray<Region>& regions = g_devices[device].regions;
    for (int i = regions.count() - 1; i >= 0; --i) {
        if (context != nullptr && regions[i].context != context) continue;
        Pool* pool = regions[i].pool;
        if (pool != nullptr) {
            pool->used = 0;
            pool->allocations = 0;
        }
        drop_region(device, &regions[i]);
    }
}

void release_idle(Pool* pool, uint64_t keep_bytes) {
    if (pool->device < 0) return;
    SortedArray<Region>& regions = g_devices[pool->device].regions;
    for (int i = regions.count() - 1; i >= 0 && pool->reserved > keep_bytes; --i) {
        if (regions[i].idle && regions[i].pool == pool) drop_region(pool->device, &regions[i]);
    }
}

void synchronised() {
    for (int device = 0; device < device_count(); ++device) {
        SortedArray<Region>& regions = g_devices[device].regions;
        if (g_devices[device].idle_regions == 0) continue;
        for (int i = regions.count() - 1; i >= 0; --i) {
            const Region& region = regions[i];
            if (!region.idle || region.pool->reserved <= region.pool->release_threshold) continue;
            drop_region(device, &regions[i]);
        }
    }
}

bool find_device_memory(uint64_t address, MemoryInfo* info) {
    const int device = device_of(address);
    if (device < 0) return false;
    Region* region = g_devices[device].regions.find(address);
    if (region == nullptr || region->idle) return false;
    *info = {MemoryInfo::kDevice,
             region->start,
             region->requested,
             device,
             region->pool,
             region->context};
    if (region->slab == nullptr) return address - region->start < region->requested;
    for (int unit = int((address - region->start) / kUnitBytes); unit >= 0; --unit) {
        const uint64_t start = region->start + uint64_t(unit) * kUnitBytes;
        if (region->slab->units_at[unit] == 0) continue;
        info->start = start;
        info->size = region->slab->bytes_at[unit];
        return address - start < info->size;
    }
    return false;
}

}  // namespace fragtrace::vgpu

using namespace fragtrace::vgpu;

CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
    FT_ENTER();
    Context* context = nullptr;
    FT_TRY(require_context(&context));
    if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    return allocate_device(context->device, bytes, nullptr, context, address);
}

CUresult cuMemAllocPitch_v2(
    CUdeviceptr* address, size_t* pitch, size_t width, size_t height, unsigned element_bytes) {
    FT_ENTER();
    Context* context = nullptr;
    FT_TRY(require_context(&context));
    const bool known_element = element_bytes == 4 || element_bytes == 8 || element_bytes == 16;
    if (address == nullptr || pitch == nullptr || width == 0 || height == 0 || !known_element) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (width > kMaxCardBytes || height > kMaxCardBytes / round_up(width, kUnitBytes)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    const uint64_t row_bytes = round_up(width, kUnitBytes);
    FT_TRY(allocate_device(context->device, row_bytes * height, nullptr, context, address));
    *pitch = row_bytes;
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t* free_out, size_t* total_out) {
    FT_ENTER();
    Context* context = nullptr;
    FT_TRY(require_context(&context));
    if (free_out != nullptr) *free_out = free_bytes(g_devices[context->device]);
    if (total_out != nullptr) *total_out = g_devices[context->device].total_bytes;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size, CUdeviceptr address) {
    FT_ENTER();
    MemoryInfo info{};
    if (!find_memory(address, &info)) return CUDA_ERROR_NOT_FOUND;
    if (base != nullptr) *base = info.start;
    if (size != nullptr) *size = info.size;
    return CUDA_SUCCESS;
}
