#include "analyzer/export/sqlite_details.h"

#include "analyzer/trace/describe_event.h"

#include <nlohmann/json.hpp>

#include <bit>
#include <fmt/format.h>
#include <string_view>

namespace fragtrace::analyzer {
namespace {

using Json = nlohmann::ordered_json;

Json detail(const Timeline& timeline, ColumnFormat format, std::uint64_t value) {
    switch (format) {
        case ColumnFormat::kNothing:
            break;
        case ColumnFormat::kBytes:
        case ColumnFormat::kNumber:
        case ColumnFormat::kNumberIfAny:
            return value == kUnknown64 ? Json(nullptr) : Json(value);
        case ColumnFormat::kHex:
            return fmt::format("{:#x}", value);
        case ColumnFormat::kText:
            return text_of(timeline, value);
        case ColumnFormat::kCudaEvent:
            return (value & kDeferredEvent) != 0
                       ? fmt::format("deferred:{}", value & ~kDeferredEvent)
                       : fmt::format("{:#x}", value);
        case ColumnFormat::kFraction:
            return std::bit_cast<double>(value);
        case ColumnFormat::kBeginEnd:
            return value != 0 ? "begin" : "end";
        case ColumnFormat::kRangeKind:
            return range_kind_name(static_cast<RangeKind>(value));
    }
    return nullptr;
}

// The values of an event that sizes_of() does not have; null if there are none.
Json details_of(const Timeline& timeline, const Event& event) {
    const EventKindInfo& info = info_of(event.kind);
    if (info.name == nullptr) {  // a kind of a later version, or an event that was left out
        return {{"address", fmt::format("{:#x}", event.address)},
                {"size", event.size_bytes},
                {"extra", event.extra}};
    }
    Json details = nullptr;
    const auto take = [&](const EventColumn& column, std::uint64_t value) {
        const std::string_view key = column.key;
        const bool is_size = key == "bytes" || key == "requested";
        const bool is_address = &column == &info.address && column.format == ColumnFormat::kHex;
        if (column.format != ColumnFormat::kNothing && !is_size && !is_address &&
            (column.format != ColumnFormat::kNumberIfAny || value != 0)) {
            details[std::string(key)] = detail(timeline, column.format, value);
        }
    };
    take(info.address, event.address);
    take(info.size, event.size_bytes);
    take(info.extra, event.extra);
    return details;
}

}  // namespace

std::optional<std::string> event_details(const Timeline& timeline, const Event& event) {
    const Json details = details_of(timeline, event);
    return details.is_null()
               ? std::nullopt
               : std::optional(details.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace fragtrace::analyzer
