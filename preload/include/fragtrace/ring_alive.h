// When the recorder's drain last ran: a killed process ended after that. The time is in bytes of
// the ring's header that RingHeader does not name, so that older readers of rings skip it.
#pragma once

#include <fragtrace/format.h>

#include <stddef.h>
#include <stdint.h>

namespace fragtrace {

// Offset in the ring of a time in nanoseconds of CLOCK_MONOTONIC, 8 bytes. 0 = not known.
inline constexpr size_t kRingAliveOffset = 288;

static_assert(kRingAliveOffset >= offsetof(RingHeader, part) + sizeof(RingHeader::part) &&
              kRingAliveOffset + sizeof(uint64_t) <= offsetof(RingHeader, lost_ring_full));

}  // namespace fragtrace
