// Physical allocations and multicast objects: the objects that a CUmemGenericAllocationHandle
// refers to. Shared by virtual_memory.cpp, multicast.cpp and shared_memory.cpp.
#pragma once

#include "driver/state.h"

namespace fragtrace::vgpu {

struct Physical {
    static constexpr Kind kKind = Kind::kPhysical;
    Object object;
    uint64_t id;
    uint64_t size;
    CUmemAllocationProp properties;
    int device;  // -1: in host memory or in another process, takes nothing from a card here
    int handles;
    int mappings;      // also counts bindings to multicast objects
    bool multicast;    // a multicast object, which has no memory of its own
    uint64_t devices;  // multicast objects: one bit per device that joined
};

Physical* live_handle(CUmemGenericAllocationHandle handle);  // null if released or not a handle
Physical* mapped_at(CUdeviceptr address, uint64_t* offset);  // null if nothing is mapped there
void drop_if_unused(Physical* physical);
void unbind_all(Physical* multicast);  // multicast.cpp

inline bool is_paged(uint64_t value) {
    return value % kPageBytes == 0;
}

}  // namespace fragtrace::vgpu
