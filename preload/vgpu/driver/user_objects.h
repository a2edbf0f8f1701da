// User objects: what a program hands to a graph to be destroyed with it. Under the state lock.
#pragma once

#include "driver/capture.h"

namespace fragtrace::vgpu {

struct HostCall {
    CUhostFn function;
    void* data;
};

bool retain(UserReference** list, UserObject* object, unsigned count);

// Takes references away; the object goes with its last one. Its function runs with the lock held
// by nobody: the caller hands over the callbacks to run.
struct Callbacks {
    HostCall calls[16];
    int count = 0;

    void release(UserObject* object, unsigned references);
    void release_all(UserReference** list);
    void run();
};

}  // namespace fragtrace::vgpu
