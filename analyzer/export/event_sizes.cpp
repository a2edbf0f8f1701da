#include "analyzer/export/event_sizes.h"

#include <fragtrace/event_kinds.h>

#include <string_view>

namespace fragtrace::analyzer {

EventSizes sizes_of(const Event& event) {
    EventSizes sizes;
    const EventKindInfo& info = info_of(event.kind);
    if (info.name == nullptr) {  // a kind of a later version
        return sizes;
    }
    if (info.address.format == ColumnFormat::kHex) {
        sizes.address = event.address;
    }
    const auto take = [&](const EventColumn& column, std::uint64_t value) {
        if (column.format == ColumnFormat::kNothing || value == kUnknown64) {
            return;
        }
        const std::string_view key = column.key;
        if (key == "bytes") {
            sizes.bytes = value;
        } else if (key == "requested") {
            sizes.requested = value;
        }
    };
    take(info.address, event.address);
    take(info.size, event.size_bytes);
    take(info.extra, event.extra);
    return sizes;
}

}  // namespace fragtrace::analyzer
