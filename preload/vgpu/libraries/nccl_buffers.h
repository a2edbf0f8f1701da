// Device memory of NCCL's communicators: nothing, a fixed size for each (nccl=SIZE), or a model of
// the buffers of its connections (nccl=model). The README describes the model, which is an
// assumption.
#pragma once

#include "libraries/nccl_communicator.h"

namespace fragtrace::vgpu {

// Allocates what a new communicator takes. All functions here are called without the lock. Returns
// false if the device has no room.
bool allocate_first_buffers(Communicator* communicator);

// Allocates the buffers of connections that this call is the first to use. Returns false if the
// device has no room.
bool allocate_connections(Communicator* on, const Call& call);

void free_buffers(int device, Buffer* buffers);

uint64_t bytes_of_buffers(const Communicator& communicator);

}  // namespace fragtrace::vgpu
