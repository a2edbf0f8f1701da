// Ids, and the event as the analyzer uses it. Strings and stacks are interned; device layer and
// block layer form one sequence. <fragtrace/format.h> defines the fields of each kind.
// event_table.h stores the events.
#pragma once

#include <fragtrace/format.h>

#include <cstdint>

namespace fragtrace::analyzer {

using DeviceAddress = std::uint64_t;  // an address or a driver handle; never dereferenced
using EventIndex = std::uint32_t;     // position in Timeline::events
using OriginId = std::uint32_t;       // (thread, native stack, Python stack), interned; 0 = unknown
using StreamId = std::uint16_t;       // dense; Timeline::streams has the raw handles
using DeviceId = std::uint8_t;        // ordinal in the traced process, < kMaxDevices

inline constexpr EventIndex kNoEvent = 0xffffffffu;
inline constexpr StreamId kNoStream = 0xffff;
// The latest time that an input may give, 146 years: the sum of two such times fits into a signed
// number.
inline constexpr std::uint64_t kMostTime_ns = (std::uint64_t{1} << 62) - 1;
inline constexpr std::uint64_t kBlockUnitBytes = 512;  // block sizes are multiples of this

inline constexpr unsigned kMaxDevices = 31;
inline constexpr unsigned kUnknownDevice = kMaxDevices;  // for Event::device

struct Event {
    std::uint64_t time_ns;     // since the start of the trace
    DeviceAddress address;     // an address or a driver handle
    std::uint64_t size_bytes;  // kUnknown64 = not known
    std::uint64_t extra;       // per kind: block bytes, handle, device total ...
    OriginId origin;
    StreamId stream;  // kNoStream = not known or not applicable
    std::uint8_t device : 5;
    std::uint8_t flags : 3;  // EventFlag
    EventKind kind;
};

static_assert(sizeof(Event) == 40);

}  // namespace fragtrace::analyzer
