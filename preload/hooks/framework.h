// What hooks ask of the framework whose pool makes a call: PyTorch. frameworks/torch*.cpp answer.
// Everything here does nothing until libc10_cuda has been seen.
//
// Sources of the block layer: c10's two report functions (interposed, called under the allocator's
// mutex: nothing here takes a lock or the GIL), the allocator object's virtual functions (a copy of
// its table with a few slots replaced), and the CUDA events that libc10_cuda records and queries.
#pragma once

#include "recorder/recorder.h"

#include <link.h>
#include <stdint.h>

namespace fragtrace::preload {

// Tells of an object that called a hook; remembers libc10_cuda and what it takes to serve it.
void torch_note_object(const link_map* object);

// At a call of cudaGetDeviceCount: the allocator exists by now and no block does.
void torch_prepare();

// True if `address` lies in libc10_cuda.
bool torch_owns(const void* address);

// One address for all of libc10_cuda's call sites, other addresses unchanged: what it calls is
// found once, in torch_prepare(), and not under the pool's mutex (finding takes the loader's lock,
// which a thread that runs constructors may hold while it waits for the pool).
const void* torch_canonical_caller(const void* caller);

// True if the device call that came from `caller` was made by the caching allocator: from its
// library, or (through another interposer) inside a call of allocate on this thread.
bool torch_is_allocating(const void* caller);

// As kFlagFromAllocator and kFlagPastPool have it, of a device call that came from `caller`.
uint8_t torch_device_flags(const void* caller, EventKind kind);

// The stacks of the calling thread; those taken at the start of an allocate call where there is
// one, which also spares a second walk.
Stacks torch_stacks();

// What the driver last reported as free to this thread; the pool asks before it gives up.
void torch_note_free_memory(uint64_t free_bytes);

// A CUDA event was recorded, or seen complete, by `caller`.
void torch_event_recorded(const void* caller, void* event, void* stream);
void torch_event_complete(const void* caller, void* event);

}  // namespace fragtrace::preload
