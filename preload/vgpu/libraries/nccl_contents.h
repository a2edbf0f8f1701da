// What the ranks of a communicator send each other: the place of contents in the shared memory, and
// the result of a call. Everything here is called with the lock held.
#pragma once

#include "libraries/nccl_communicator.h"

#include <cstddef>
#include <cstdint>

namespace fragtrace::vgpu {

// Inputs and results of at most this size have contents. Larger ones are zeros.
constexpr size_t kMostContents = size_t{1} << 20;

bool reduces(CallKind kind);

size_t part_bytes(const Call& call);
size_t bytes_sent(const Communicator& on, const Call& call);
size_t bytes_received(const Communicator& on, const Call& call);

// The ring for what a call sends: the peer's number, or that of the collectives' ring. A receive
// uses none.
int ring_of(const Communicator& on, const Call& call);

// Finds a place for contents in a ring of this rank's data. Returns false while the readers of
// earlier contents have not read enough.
bool find_place(Communicator* on, int ring, uint64_t bytes, uint64_t* offset);

// Puts contents at that place, for the message or collective of this number, and names the place in
// `post`. Without room in the file system the peers see zeros.
void put_contents(Communicator* on,
                  int ring,
                  uint64_t offset,
                  const void* contents,
                  uint64_t bytes,
                  uint64_t number,
                  Post* post);

// Frees the lists of the rings.
void forget_contents(Communicator* on);

// Fills the zeroed result of a call that all its peers have posted. Returns false if all of it is
// unknown.
bool compute(
    const Communicator& on, const Call& call, uint64_t number, unsigned char* result, size_t bytes);

}  // namespace fragtrace::vgpu
