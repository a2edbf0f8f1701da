#include "analyzer/trace/describe_event.h"

#include <bit>
#include <fmt/format.h>
#include <iterator>

namespace fragtrace::analyzer {
namespace {

using Out = std::back_insert_iterator<std::string>;

void add_bytes(Out out, std::string_view key, std::uint64_t value) {
    if (value == kUnknown64) {
        fmt::format_to(out, " {}=unknown", key);
    } else {
        fmt::format_to(out, " {}={}", key, value);
    }
}

void add_columns(Out out, const Timeline& timeline, const Event& event) {
    switch (event.kind) {
        case EventKind::kDeviceAlloc:
        case EventKind::kAddressReserve:
        case EventKind::kAddressFree:
        case EventKind::kUnmap:
            fmt::format_to(out, " address={:#x}", event.address);
            return add_bytes(out, "bytes", event.size_bytes);
        case EventKind::kDeviceFree:
            fmt::format_to(out, " address={:#x}", event.address);
            return;
        case EventKind::kPhysicalCreate:
            fmt::format_to(out, " handle={:#x}", event.address);
            return add_bytes(out, "bytes", event.size_bytes);
        case EventKind::kPhysicalRelease:
            fmt::format_to(out, " handle={:#x}", event.address);
            return;
        case EventKind::kMap:
            fmt::format_to(out, " address={:#x}", event.address);
            add_bytes(out, "bytes", event.size_bytes);
            fmt::format_to(out, " handle={:#x}", event.extra);
            return;
        case EventKind::kMemoryInfo:
            add_bytes(out, "free", event.size_bytes);
            return add_bytes(out, "total", event.extra);
        case EventKind::kAllocRefused:
            add_bytes(out, "bytes", event.size_bytes);
            fmt::format_to(out, " error={}", event.extra);
            return;
        case EventKind::kBlockAlloc:
            fmt::format_to(out, " address={:#x}", event.address);
            add_bytes(out, "requested", event.size_bytes);
            return add_bytes(out, "bytes", event.extra);
        case EventKind::kBlockFree:
            fmt::format_to(out, " address={:#x}", event.address);
            return add_bytes(out, "bytes", event.extra);
        case EventKind::kBlockOutOfMemory:
            add_bytes(out, "requested", event.size_bytes);
            return add_bytes(out, "device_free", event.extra);
        case EventKind::kPendingEvent:
            fmt::format_to(out, " address={:#x} event={:#x}", event.address, event.extra);
            return;
        case EventKind::kEventComplete:
            fmt::format_to(out, " event={:#x}", event.extra);
            return;
        case EventKind::kMemoryFraction:
            fmt::format_to(out, " fraction={}", std::bit_cast<double>(event.size_bytes));
            return;
        case EventKind::kRangeBegin:
        case EventKind::kRangeEnd:
        case EventKind::kMark:
            fmt::format_to(
                out, " text={:?}", timeline.fact(fmt::format("text.{}", event.size_bytes)));
            return;
        default:
            fmt::format_to(out,
                           " address={:#x} size={} extra={}",
                           event.address,
                           event.size_bytes,
                           event.extra);
            return;
    }
}

void add_flags(Out out, const Event& event) {
    if ((event.flags & kFlagFromAllocator) != 0) {
        fmt::format_to(out, " from_allocator");
    }
    if ((event.flags & kFlagPending) != 0) {
        fmt::format_to(out, " pending");
    }
    if ((event.flags & kFlagByPool) != 0) {
        fmt::format_to(out, " by_recorder");
    }
}

}  // namespace

std::string kind_name(EventKind kind) {
    switch (kind) {
        case EventKind::kNone:
            return "none";
        case EventKind::kDeviceAlloc:
            return "device_alloc";
        case EventKind::kDeviceFree:
            return "device_free";
        case EventKind::kAddressReserve:
            return "address_reserve";
        case EventKind::kAddressFree:
            return "address_free";
        case EventKind::kPhysicalCreate:
            return "physical_create";
        case EventKind::kPhysicalRelease:
            return "physical_release";
        case EventKind::kMap:
            return "map";
        case EventKind::kUnmap:
            return "unmap";
        case EventKind::kDeviceReset:
            return "device_reset";
        case EventKind::kMemoryInfo:
            return "memory_info";
        case EventKind::kAllocRefused:
            return "alloc_refused";
        case EventKind::kBlockAlloc:
            return "block_alloc";
        case EventKind::kBlockFree:
            return "block_free";
        case EventKind::kBlockOutOfMemory:
            return "block_out_of_memory";
        case EventKind::kPendingEvent:
            return "pending_event";
        case EventKind::kEventComplete:
            return "event_complete";
        case EventKind::kEmptyCache:
            return "empty_cache";
        case EventKind::kMemoryFraction:
            return "memory_fraction";
        case EventKind::kRangeBegin:
            return "range_begin";
        case EventKind::kRangeEnd:
            return "range_end";
        case EventKind::kMark:
            return "mark";
    }
    return fmt::format("kind_{}", static_cast<unsigned>(kind));
}

std::string describe_event(const Timeline& timeline, EventIndex index, Symbolizer* symbols) {
    const Event& event = timeline.events[index];
    std::string line = fmt::format(
        "{} {}.{:09} ", index, event.time_ns / 1'000'000'000, event.time_ns % 1'000'000'000);
    if (event.device < kMaxDevices) {
        line += fmt::format("gpu{} ", static_cast<unsigned>(event.device));
    } else {
        line += "gpu? ";
    }
    line += kind_name(event.kind);
    const Out out = std::back_inserter(line);
    add_columns(out, timeline, event);
    if (event.stream < timeline.streams.size()) {
        fmt::format_to(out, " stream={:#x}", timeline.streams[event.stream]);
    }
    add_flags(out, event);
    if (event.origin < timeline.origins.size() && event.origin != 0) {
        fmt::format_to(out, " thread={}", timeline.origins[event.origin].thread);
    }
    if (symbols != nullptr) {
        line += " | " + symbols->describe(event.origin);
    }
    return line;
}

}  // namespace fragtrace::analyzer
