// The hooks' interface to the frameworks whose allocators make a call: PyTorch
// (frameworks/torch*.cpp, whose functions do nothing until libc10_cuda has been seen), TensorFlow,
// JAX, ONNX Runtime and ggml.
//
// The block layer of PyTorch has three sources. First, c10's two report functions: they are
// interposed and called under the allocator's mutex, so nothing here takes a lock or the GIL.
// Second, the virtual functions of the allocator object: a copy of its table with a few slots
// replaced. Third, the CUDA events that libc10_cuda records and queries.
#pragma once

#include "recorder/recorder.h"

#include <link.h>
#include <stdint.h>

namespace fragtrace::preload {

// Called for an object that called a hook. Remembers libc10_cuda and what is needed to serve it.
void torch_note_object(const link_map* object);

// The same for TensorFlow's library. If its allocator has other functions than those of hooks.def,
// writes the fact "tensorflow.pool" with this reason (frameworks/tensorflow.cpp).
void tensorflow_note_object(const link_map* object);

// The same for ONNX Runtime's CUDA provider: replaces functions of its arena, which is in another
// library (frameworks/onnxruntime.cpp).
void onnxruntime_note_object(const link_map* object);

// The same for a library with ggml's CUDA backend: replaces functions of its pools
// (frameworks/ggml.cpp).
void ggml_note_object(const link_map* object);

// Called at cudaGetDeviceCount: the allocator exists by then, and has no block yet.
void torch_prepare();

// Returns true if `address` is in libc10_cuda.
bool torch_owns(const void* address);

// Returns one address for all call sites in libc10_cuda, and other addresses unchanged. So the
// functions that libc10_cuda calls are looked up once, in torch_prepare(), and not under the
// allocator's mutex. A look-up takes the loader's lock, and a thread that runs constructors may own
// that lock while it waits for the allocator.
const void* torch_canonical_caller(const void* caller);

// Returns true if the caching allocator made the device call that came from `caller`: the call came
// from its library, or (through another interposer) inside a call of allocate on this thread.
bool torch_is_allocating(const void* caller);

// Returns kFlagFromAllocator and kFlagPastPool, as they apply to a device call that came from
// `caller`.
uint8_t torch_device_flags(const void* caller, EventKind kind);

// Returns the stacks of the calling thread. Inside an allocate call, these are the stacks from its
// start, which also avoids a second walk.
Stacks torch_stacks();

// Notes the free memory that the driver last reported to this thread; the allocator asks before it
// fails a request.
void torch_note_free_memory(uint64_t free_bytes);

// `caller` recorded a CUDA event, or saw that it has completed.
void torch_event_recorded(const void* caller, void* event, void* stream);
void torch_event_complete(const void* caller, void* event);

// Called when a library retained a device's primary context: JAX does so before it creates its
// allocators. Waits a bounded time for the drain thread, once, if JAX's plug-in is loaded.
void jax_prepare();

}  // namespace fragtrace::preload
