// Detects events that are impossible on any device, from a damaged or made-up file. They become
// events of kind kNone, so all code that computes with addresses and sizes can rely on plausible
// values.
#pragma once

#include <fragtrace/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace fragtrace::analyzer {

// No device has more memory, and no allocation is larger.
inline constexpr std::uint64_t kMostDeviceBytes = std::uint64_t{1} << 50;
// Addresses, and ends of address ranges, are at most this.
inline constexpr std::uint64_t kHighestAddress = std::uint64_t{1} << 62;

// Whether [address, address + size) is a possible range of memory.
constexpr bool is_possible_range(std::uint64_t address, std::uint64_t size_bytes) {
    return size_bytes <= kMostDeviceBytes && address <= kHighestAddress - kMostDeviceBytes;
}

namespace possible_event {

// The meaning of a kind's fields, if they have bounds.
enum class Shape : std::uint8_t {
    kNoSize,
    kUnbounded,
    kRange,
    kUnknownRange,
    kBlock,
    kBytes,
    kPair,
    kFraction
};

inline constexpr std::array<Shape, 256> kShapes = [] {
    std::array<Shape, 256> shapes = {};
    const auto set = [&shapes](Shape shape, auto... kinds) {
        ((shapes[static_cast<std::size_t>(kinds)] = shape), ...);
    };
    using enum EventKind;
    set(Shape::kRange, kDeviceAlloc, kAddressReserve, kMap, kUnmap, kManagedAlloc, kAsyncAlloc);
    set(Shape::kRange, kGraphAlloc, kHostAlloc, kHostRegister);
    set(Shape::kUnknownRange, kImport, kArrayAlloc);
    set(Shape::kBlock, kBlockAlloc, kProgramBlockAlloc);
    set(Shape::kBytes, kPhysicalCreate, kContextCreate, kModuleLoad);
    set(Shape::kPair, kMemoryInfo, kPoolInfo, kGraphMemory);
    set(Shape::kFraction, kMemoryFraction);
    // A refused request may have any size, a limit may be "none", and the size of a free is
    // ignored.
    set(Shape::kUnbounded, kAllocRefused, kBlockOutOfMemory, kProgramRequestFailed);
    set(Shape::kUnbounded, kPoolCreate, kPoolTrim);
    set(Shape::kUnbounded, kAddressFree, kBlockFree);
    return shapes;
}();

constexpr bool has_size(const EventKindInfo& kind) {
    for (const EventColumn& column : {kind.address, kind.size, kind.extra}) {
        if (column.format == ColumnFormat::kBytes || column.format == ColumnFormat::kFraction) {
            return true;
        }
    }
    return false;
}

static_assert(
    [] {
        for (std::size_t kind = 0; kind < kShapes.size(); ++kind) {
            if (has_size(kEventKinds.kinds[kind]) != (kShapes[kind] != Shape::kNoSize)) {
                return false;
            }
        }
        return true;
    }(),
    "a kind of event with a size needs a row in kShapes");

}  // namespace possible_event

constexpr bool is_possible(EventKind kind,
                           std::uint64_t address,
                           std::uint64_t size,
                           std::uint64_t extra) {
    using possible_event::Shape;
    switch (possible_event::kShapes[static_cast<std::size_t>(kind)]) {
        case Shape::kNoSize:
        case Shape::kUnbounded:
            return true;
        case Shape::kRange:
            return is_possible_range(address, size);
        case Shape::kUnknownRange:  // an array has only a handle
            return size == kUnknown64 || size <= kMostDeviceBytes;
        case Shape::kBlock:
            return is_possible_range(address, extra) &&
                   (size == kUnknown64 || size <= kMostDeviceBytes);
        case Shape::kBytes:
            return size == kUnknown64 || size <= kMostDeviceBytes;
        case Shape::kPair:
            return size <= kMostDeviceBytes && extra <= kMostDeviceBytes;
        case Shape::kFraction: {
            const double fraction = std::bit_cast<double>(size);
            return fraction >= 0 && fraction <= 1;
        }
    }
    return true;
}

// `event` has the fields of EventRecord.
template <typename Record>
void blank_if_impossible(Record* event) {
    if (!is_possible(event->kind, event->address, event->size, event->extra)) {
        event->kind = EventKind::kNone;
    }
}

}  // namespace fragtrace::analyzer
