// Which private pool the allocator chooses for a request.
//
// Since 2.3 that is decided by functions ("filters") that came with the call which began to route
// requests to a pool; the first one that accepts the request's stream wins. Ours take their place,
// ask the original, and note what it answered: the pool of a block is what the allocator itself was
// told, at no cost where nothing is routed. Before, streams were routed one by one (2.1, 2.2), or
// by the capture that they take part in (2.0).
#pragma once

#include <stdint.h>

namespace fragtrace::preload {

// std::function<bool(cudaStream_t)> of libstdc++: 16 bytes of its own for the callable, a function
// that manages it and one that calls it. An object of it is passed by address, and moving it moves
// these words.
struct Filter {
    using Manage = bool(void* to, const void* from, int operation);
    using Invoke = bool(const void* callable, void** stream);

    enum Operation : int { kTypeInfo, kCallable, kClone, kDestroy };

    void* callable[2];
    Manage* manage;  // nullptr: empty
    Invoke* invoke;
};

static_assert(sizeof(Filter) == 32);

// Takes the place of the caller's filter, which the allocator is about to move to its list. Notes
// `pool` as TorchThread::routed_pool when it accepts.
void watch_filter(Filter* filter, uint32_t pool);

// All requests of a stream go to a pool from now on; 0 ends that.
void route_stream(uint16_t device, uint64_t stream, uint32_t pool);
uint32_t pool_of_stream(uint16_t device, uint64_t stream);

// All requests of the streams of a capture, named by its graph, go to a pool; 0 ends that.
void route_capture(uint16_t device, uint64_t graph, uint32_t pool);

}  // namespace fragtrace::preload
