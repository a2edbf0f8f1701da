// The private pool that the allocator chooses for a request.
//
// Since 2.3, filter functions decide that. They come with the call that starts to route requests to
// a pool, and the first filter that accepts the request's stream wins. Our wrappers replace them,
// call the original and note its result. So the recorded pool of a block is the pool that the
// allocator chose, and this costs nothing while nothing is routed. Earlier releases routed
// individual streams (2.1, 2.2) or captures (2.0).
#pragma once

#include <stdint.h>

namespace fragtrace::preload {

// The layout of libstdc++'s std::function<bool(cudaStream_t)>: 16 bytes for the callable, a
// function that manages it and one that calls it. It is passed by address, and moving it moves
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

// Replaces the caller's filter, which the allocator will move to its list. When the filter accepts,
// notes `pool` as TorchThread::routed_pool.
void watch_filter(Filter* filter, uint32_t pool);

// Routes all requests of a stream to a pool; 0 ends that.
void route_stream(uint16_t device, uint64_t stream, uint32_t pool);
uint32_t pool_of_stream(uint16_t device, uint64_t stream);

// Routes all requests of the streams of a capture, identified by its graph, to a pool; 0 ends that.
void route_capture(uint16_t device, uint64_t graph, uint32_t pool);

}  // namespace fragtrace::preload
