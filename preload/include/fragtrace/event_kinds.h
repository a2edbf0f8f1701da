// Properties of each kind of event, generated from the rows of event_kinds.def.
//
// Like format.h: no allocation, no exceptions, nothing but libc.
#pragma once

#include <stdint.h>

namespace fragtrace {

// The kind of an event. The numbers are part of the trace format.
enum class EventKind : uint8_t {
    kNone = 0,
#define FT_EVENT_KIND(name, number, ...) k##name = number,
#include <fragtrace/event_kinds.def>
};

// The kind of object whose lifetime an event begins or ends. A live address or handle is unique
// within one Thing.
enum class Thing : uint8_t {
    kNone,
    kDevice,  // device memory that a device_free ends, managed memory included
    kReservation,
    kHost,
    kRegistered,
    kArray,
    kBlock,
    // A program may begin the following ones more than once, or end them in a way that is not
    // recorded.
    kImport,
    kGraph,
    kPool,
    kModule,
    kContext,
    kPairs,  // not a Thing: the ones above end individually, by an event with their address
    // State that only the recorder's live table keeps, to write it into checkpoints.
    kPhysical = kPairs,
    kMapping,
    kPoolAttribute,
    kPoolSelect,
    kPoolInfo,
    kPoolUse,
    kPendingFree,   // of a block, which stays until all of its CUDA events have completed
    kPendingEvent,  // found by the handle of its CUDA event
    kMemoryInfo,
    kMemoryFraction,
    kSettings,
    kGraphMemory,
    kRange,
    kRangeDepth,  // number of open ranges of a thread
    kRangeOfThread,
    kProgramBlock,  // found by its address and its pool
};

// True for a Thing that cannot begin twice at one address and cannot end without a begin.
constexpr bool is_strict(Thing thing) {
    return thing < Thing::kImport;
}

enum EventTrait : uint8_t {
    kCall = 1,           // a call to the driver or the CUDA runtime that the recorder timed
    kRequest = 2,        // a request for device memory, from the driver or from a framework's
                         // allocator
    kTakesMemory = 4,    // from this event on, device memory is allocated for the process
    kReturnsMemory = 8,  // the driver may get device memory back
    kHasStream = 16,     // the stream column is valid
    kRemark = 32,        // about the recording or the program, not about memory
};

enum class ColumnFormat : uint8_t {
    kNothing,
    kBytes,  // kUnknown64 = unknown
    kNumber,
    kNumberIfAny,  // 0 = none
    kHex,
    kText,  // the value is the N of a fact text.N
    kCudaEvent,
    kFraction,  // the value is the bits of a double
    kBeginEnd,  // 1 or 0
    kRangeKind,
};

struct EventColumn {
    ColumnFormat format = ColumnFormat::kNothing;
    const char* key = "";
};

struct EventEffect {
    Thing begins = Thing::kNone;
    Thing ends = Thing::kNone;
};

struct EventKindInfo {
    const char* name = nullptr;  // nullptr: this version does not know the kind
    EventEffect effect;
    uint8_t traits = 0;
    EventColumn address, size, extra;
};

// Names that the rows of event_kinds.def use.
namespace event_rows {

using enum Thing;

inline constexpr EventEffect kOther;
inline constexpr EventColumn kNothing;

constexpr EventEffect begins(Thing thing) {
    return {thing, kNone};
}

constexpr EventEffect ends(Thing thing) {
    return {kNone, thing};
}

constexpr EventColumn bytes(const char* key) {
    return {ColumnFormat::kBytes, key};
}

constexpr EventColumn number(const char* key) {
    return {ColumnFormat::kNumber, key};
}

constexpr EventColumn number_if_any(const char* key) {
    return {ColumnFormat::kNumberIfAny, key};
}

constexpr EventColumn hex(const char* key) {
    return {ColumnFormat::kHex, key};
}

constexpr EventColumn text(const char* key) {
    return {ColumnFormat::kText, key};
}

constexpr EventColumn cuda_event(const char* key) {
    return {ColumnFormat::kCudaEvent, key};
}

constexpr EventColumn fraction(const char* key) {
    return {ColumnFormat::kFraction, key};
}

constexpr EventColumn begin_end(const char* key) {
    return {ColumnFormat::kBeginEnd, key};
}

constexpr EventColumn range_kind(const char* key) {
    return {ColumnFormat::kRangeKind, key};
}

}  // namespace event_rows

struct EventKindTable {
    EventKindInfo kinds[256];

    constexpr EventKindTable() {
        using namespace event_rows;
#define FT_EVENT_KIND(name, number, text, effect, traits, address, size, extra) \
    kinds[number] = {#text, effect, traits, address, size, extra};
#include <fragtrace/event_kinds.def>
    }
};

inline constexpr EventKindTable kEventKinds;

constexpr const EventKindInfo& info_of(EventKind kind) {
    return kEventKinds.kinds[static_cast<uint8_t>(kind)];
}

constexpr bool has_trait(EventKind kind, EventTrait trait) {
    return (info_of(kind).traits & trait) != 0;
}

}  // namespace fragtrace
