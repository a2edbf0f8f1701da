#include "analyzer/trace/describe_event.h"

#include "analyzer/model/unknown_segments.h"

#include <bit>
#include <fmt/format.h>
#include <iterator>

namespace fragtrace::analyzer {
namespace {

using Out = std::back_insert_iterator<std::string>;

void add_column(Out out, const Timeline& timeline, EventColumn column, std::uint64_t value) {
    const std::string_view key = column.key;
    switch (column.format) {
        case ColumnFormat::kNothing:
            break;
        case ColumnFormat::kBytes:
            if (value == kUnknown64) {
                fmt::format_to(out, " {}=unknown", key);
                break;
            }
            [[fallthrough]];
        case ColumnFormat::kNumber:
            fmt::format_to(out, " {}={}", key, value);
            break;
        case ColumnFormat::kNumberIfAny:
            if (value != 0) {
                fmt::format_to(out, " {}={}", key, value);
            }
            break;
        case ColumnFormat::kHex:
            fmt::format_to(out, " {}={:#x}", key, value);
            break;
        case ColumnFormat::kText:
            fmt::format_to(out, " {}={:?}", key, timeline.fact(fmt::format("text.{}", value)));
            break;
        case ColumnFormat::kCudaEvent:
            if ((value & kDeferredEvent) != 0) {
                fmt::format_to(out, " {}=deferred:{}", key, value & ~kDeferredEvent);
            } else {
                fmt::format_to(out, " {}={:#x}", key, value);
            }
            break;
        case ColumnFormat::kFraction:
            fmt::format_to(out, " {}={}", key, std::bit_cast<double>(value));
            break;
        case ColumnFormat::kBeginEnd:
            fmt::format_to(out, " {}", value != 0 ? "begin" : "end");
            break;
        case ColumnFormat::kRangeKind:
            fmt::format_to(out, " {}={}", key, range_kind_name(static_cast<RangeKind>(value)));
            break;
    }
}

void add_columns(Out out, const Timeline& timeline, const Event& event) {
    const EventKindInfo& info = info_of(event.kind);
    if (info.name == nullptr) {  // a kind of a later version
        fmt::format_to(
            out, " address={:#x} size={} extra={}", event.address, event.size_bytes, event.extra);
        return;
    }
    const bool address_last = info.address.format == ColumnFormat::kNumberIfAny;
    if (!address_last) {
        add_column(out, timeline, info.address, event.address);
    }
    add_column(out, timeline, info.size, event.size_bytes);
    add_column(out, timeline, info.extra, event.extra);
    if (address_last) {
        add_column(out, timeline, info.address, event.address);
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
    {kFlagUpperEnd, EventKind::kProgramBlockAlloc, "upper_end"},
    {kFlagUpperEnd, EventKind::kProgramRequestFailed, "upper_end"},
    {kFlagByPool, EventKind::kMemoryInfo, "by_recorder"},
    {kFlagByPool, EventKind::kPoolInfo, "by_recorder"},
    {kFlagOfGraph, EventKind::kBlockAlloc, "of_graph"},
    {kFlagRejected, EventKind::kBlockOutOfMemory, "rejected"},
    {kFlagSegmentUnknown, EventKind::kBlockAlloc, "segment_unknown"},
    {kFlagSegmentUnknown, EventKind::kBlockFree, "segment_unknown"},
    {kFlagSegmentUnknown, EventKind::kBlockOutOfMemory, "segment_unknown"},
};

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
    const char* name = info_of(kind).name;
    return name != nullptr ? name : fmt::format("kind_{}", static_cast<unsigned>(kind));
}

std::string flag_words(const Event& event) {
    if (event.flags == 0) {
        return "";
    }
    std::string words = (event.flags & kFlagFromAllocator) != 0 && !is_without_segment(event)
                            ? "from_allocator"
                            : "";
    for (const FlagWord& word : kFlagWords) {
        if (event.kind == word.kind && (event.flags & word.flag) != 0) {
            words += words.empty() ? "" : " ";
            words += word.word;
        }
    }
    return words;
}

std::string describe_event(const Timeline& timeline,
                           std::uint64_t index,
                           const Event& event,
                           std::uint32_t pool,
                           Symbolizer* symbols) {
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
    if (pool != 0) {
        fmt::format_to(out, " pool={}", pool);
        if (const auto known = timeline.pools.find(pool); known != timeline.pools.end()) {
            fmt::format_to(out, "({})", known->second.text);
        }
    }
    if (const std::string words = flag_words(event); !words.empty()) {
        line += " " + words;
    }
    if (event.origin < timeline.origins.size() && event.origin != 0) {
        fmt::format_to(out, " thread={}", timeline.origins[event.origin].thread);
    }
    if (symbols != nullptr) {
        line += " | " + symbols->describe(event.origin);
    }
    return line;
}

std::string describe_event(const Timeline& timeline, EventIndex index, Symbolizer* symbols) {
    return describe_event(
        timeline, index, timeline.events[index], timeline.event_pools.at(index), symbols);
}

}  // namespace fragtrace::analyzer
