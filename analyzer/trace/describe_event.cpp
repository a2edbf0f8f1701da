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

void add_cuda_event(Out out, std::uint64_t event) {
    if ((event & kDeferredEvent) != 0) {
        fmt::format_to(out, " event=deferred:{}", event & ~kDeferredEvent);
    } else {
        fmt::format_to(out, " event={:#x}", event);
    }
}

void add_columns(Out out, const Timeline& timeline, const Event& event) {
    switch (event.kind) {
        case EventKind::kDeviceAlloc:
        case EventKind::kAsyncAlloc:
        case EventKind::kAddressReserve:
        case EventKind::kAddressFree:
        case EventKind::kUnmap:
            fmt::format_to(out, " address={:#x}", event.address);
            return add_bytes(out, "bytes", event.size_bytes);
        case EventKind::kDeviceFree:
        case EventKind::kHostFree:
        case EventKind::kHostUnregister:
        case EventKind::kAsyncFree:
            fmt::format_to(out, " address={:#x}", event.address);
            return;
        case EventKind::kPhysicalCreate:
        case EventKind::kArrayAlloc:
        case EventKind::kPoolCreate:
        case EventKind::kContextCreate:
        case EventKind::kModuleLoad:
            fmt::format_to(out, " handle={:#x}", event.address);
            return add_bytes(out, "bytes", event.size_bytes);
        case EventKind::kPhysicalRelease:
        case EventKind::kPhysicalRetain:
        case EventKind::kArrayFree:
        case EventKind::kPoolDestroy:
        case EventKind::kPoolSelect:
        case EventKind::kContextDestroy:
        case EventKind::kModuleUnload:
            fmt::format_to(out, " handle={:#x}", event.address);
            return;
        case EventKind::kManagedAlloc:
        case EventKind::kHostAlloc:
        case EventKind::kHostRegister:
            fmt::format_to(out, " address={:#x}", event.address);
            add_bytes(out, "bytes", event.size_bytes);
            fmt::format_to(out, " flags={:#x}", event.extra);
            return;
        case EventKind::kPoolTrim:
            fmt::format_to(out, " handle={:#x}", event.address);
            add_bytes(out, "keep", event.size_bytes);
            return add_bytes(out, "reserved", event.extra);
        case EventKind::kPoolAttribute:
            fmt::format_to(out,
                           " handle={:#x} attribute={} value={}",
                           event.address,
                           event.extra,
                           event.size_bytes);
            return;
        case EventKind::kPoolInfo:
        case EventKind::kGraphMemory:
            fmt::format_to(out, " handle={:#x}", event.address);
            add_bytes(out, "used", event.size_bytes);
            return add_bytes(out, "reserved", event.extra);
        case EventKind::kImport:
        case EventKind::kImportEnd:
        case EventKind::kExport:
            fmt::format_to(out, " address={:#x}", event.address);
            add_bytes(out, "bytes", event.size_bytes);
            fmt::format_to(out, " shared={:#x}", event.extra);
            return;
        case EventKind::kGraphAlloc:
        case EventKind::kGraphFree:
            fmt::format_to(out, " address={:#x}", event.address);
            add_bytes(out, "bytes", event.size_bytes);
            fmt::format_to(out, " graph={:#x}", event.extra);
            return;
        case EventKind::kCallOutOfMemory:
            fmt::format_to(out,
                           " call={:?} error={}",
                           timeline.fact(fmt::format("text.{}", event.size_bytes)),
                           event.extra);
            return;
        case EventKind::kCallTime:
            fmt::format_to(out, " sequence={} ns={}", event.address, event.size_bytes);
            return;
        case EventKind::kSettings:
            fmt::format_to(
                out, " settings={:?}", timeline.fact(fmt::format("text.{}", event.size_bytes)));
            return;
        case EventKind::kPoolUse:
            fmt::format_to(out, " {}", event.size_bytes != 0 ? "begin" : "end");
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
            fmt::format_to(out, " address={:#x}", event.address);
            return add_cuda_event(out, event.extra);
        case EventKind::kEventComplete:
            return add_cuda_event(out, event.extra);
        case EventKind::kMemoryFraction:
            fmt::format_to(out, " fraction={}", std::bit_cast<double>(event.size_bytes));
            return;
        case EventKind::kRangeBegin:
        case EventKind::kRangeEnd:
        case EventKind::kMark:
            fmt::format_to(out,
                           " text={:?} kind={}",
                           timeline.fact(fmt::format("text.{}", event.size_bytes)),
                           range_kind_name(static_cast<RangeKind>(event.extra)));
            if (event.address != 0) {
                fmt::format_to(out, " range={}", event.address);
            }
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

struct FlagWord {
    std::uint8_t flag;
    EventKind kind;
    std::string_view word;
};

constexpr FlagWord kFlagWords[] = {
    {kFlagPending, EventKind::kBlockFree, "pending"},
    {kFlagInCapture, EventKind::kBlockAlloc, "in_capture"},
    {kFlagInCapture, EventKind::kBlockOutOfMemory, "in_capture"},
    {kFlagInCapture, EventKind::kEmptyCache, "in_capture"},
    {kFlagPastPool, EventKind::kDeviceAlloc, "past_pool"},
    {kFlagPastPool, EventKind::kAllocRefused, "past_pool"},
    {kFlagUnsettled, EventKind::kMemoryInfo, "unsettled"},
    {kFlagByPool, EventKind::kMemoryInfo, "by_recorder"},
    {kFlagByPool, EventKind::kPoolInfo, "by_recorder"},
    {kFlagOfGraph, EventKind::kBlockAlloc, "of_graph"},
    {kFlagRejected, EventKind::kBlockOutOfMemory, "rejected"},
};

void add_flags(Out out, const Event& event) {
    if ((event.flags & kFlagFromAllocator) != 0) {
        fmt::format_to(out, " from_allocator");
    }
    for (const FlagWord& word : kFlagWords) {
        if (event.kind == word.kind && (event.flags & word.flag) != 0) {
            fmt::format_to(out, " {}", word.word);
        }
    }
}

}  // namespace

std::string_view range_kind_name(RangeKind kind) {
    switch (kind) {
        case RangeKind::kApi:
            return "api";
        case RangeKind::kNvtx:
            return "nvtx";
        case RangeKind::kCell:
            return "cell";
    }
    return "other";
}

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
        case EventKind::kManagedAlloc:
            return "managed_alloc";
        case EventKind::kHostAlloc:
            return "host_alloc";
        case EventKind::kHostFree:
            return "host_free";
        case EventKind::kHostRegister:
            return "host_register";
        case EventKind::kHostUnregister:
            return "host_unregister";
        case EventKind::kArrayAlloc:
            return "array_alloc";
        case EventKind::kArrayFree:
            return "array_free";
        case EventKind::kAsyncAlloc:
            return "async_alloc";
        case EventKind::kAsyncFree:
            return "async_free";
        case EventKind::kPoolCreate:
            return "pool_create";
        case EventKind::kPoolDestroy:
            return "pool_destroy";
        case EventKind::kPoolTrim:
            return "pool_trim";
        case EventKind::kPoolAttribute:
            return "pool_attribute";
        case EventKind::kPoolInfo:
            return "pool_info";
        case EventKind::kPoolSelect:
            return "pool_select";
        case EventKind::kImport:
            return "import";
        case EventKind::kImportEnd:
            return "import_end";
        case EventKind::kExport:
            return "export";
        case EventKind::kPhysicalRetain:
            return "physical_retain";
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
        case EventKind::kPoolRelease:
            return "pool_release";
        case EventKind::kPoolRewind:
            return "pool_rewind";
        case EventKind::kSettings:
            return "settings";
        case EventKind::kPoolUse:
            return "pool_use";
        case EventKind::kGraphAlloc:
            return "graph_alloc";
        case EventKind::kGraphFree:
            return "graph_free";
        case EventKind::kGraphMemory:
            return "graph_memory";
        case EventKind::kContextCreate:
            return "context_create";
        case EventKind::kContextDestroy:
            return "context_destroy";
        case EventKind::kModuleLoad:
            return "module_load";
        case EventKind::kModuleUnload:
            return "module_unload";
        case EventKind::kCallOutOfMemory:
            return "call_out_of_memory";
        case EventKind::kCallTime:
            return "call_time";
        case EventKind::kCheckpointBegin:
            return "checkpoint_begin";
        case EventKind::kCheckpointEnd:
            return "checkpoint_end";
        case EventKind::kRecordingStopped:
            return "recording_stopped";
        case EventKind::kRecordingStarted:
            return "recording_started";
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
    if (const std::uint32_t pool = timeline.event_pools.at(index)) {
        fmt::format_to(out, " pool={}", pool);
        if (const auto known = timeline.pools.find(pool); known != timeline.pools.end()) {
            fmt::format_to(out, "({})", known->second.text);
        }
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
