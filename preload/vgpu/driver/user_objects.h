// User objects: resources of the program that are destroyed with a graph. The state lock protects
// them.
#pragma once

#include "driver/capture.h"

namespace fragtrace::vgpu {

struct HostCall {
    CUhostFn function;
    void* data;
};

bool retain(UserReference** list, UserObject* object, unsigned count);

// Collects destructors of objects whose last reference was released. The caller calls run() after
// it has released the state lock.
struct Callbacks {
    HostCall calls[16];
    int count = 0;

    void release(UserObject* object, unsigned references);
    void release_all(UserReference** list);
    void run();
};

}  // namespace fragtrace::vgpu
