// A timeline made by hand, for tests of scripts and replays.
#pragma once

#include "analyzer/model/timeline.h"
#include "analyzer/support/units.h"

#include <cstdint>
#include <functional>

namespace fragtrace::analyzer {

inline constexpr DeviceAddress kBase = 0x200000000000;

struct Recorder {
    Timeline timeline;

    Recorder() {
        timeline.streams = {0, 64};
        timeline.origins.emplace_back();
    }

    EventIndex add(EventKind kind,
                   DeviceAddress address,
                   std::uint64_t size,
                   std::uint64_t extra = 0,
                   std::uint8_t flags = 0,
                   EventIndex partner = kNoEvent) {
        const auto index = static_cast<EventIndex>(timeline.events.size());
        Event event{};
        event.time_ns = index * 1000;
        event.address = address;
        event.size_bytes = size;
        event.extra = extra;
        event.kind = kind;
        event.flags = static_cast<std::uint8_t>(flags & 7);
        timeline.events.push_back(event);
        timeline.partner.push_back(partner);
        if (partner != kNoEvent) {
            timeline.partner[partner] = index;
        }
        return index;
    }

    void change_last(const std::function<void(Event*)>& change) {
        Event event = timeline.events.back();
        change(&event);
        timeline.events.set(timeline.events.size() - 1, event);
    }

    // Like add(), for an event of a private pool.
    EventIndex in_pool(std::uint32_t pool,
                       EventKind kind,
                       DeviceAddress address,
                       std::uint64_t size,
                       std::uint64_t extra = 0,
                       EventIndex partner = kNoEvent,
                       std::uint8_t flags = 0) {
        const EventIndex index = add(kind, address, size, extra, flags, partner);
        timeline.event_pools.add(index, pool);
        return index;
    }
};

}  // namespace fragtrace::analyzer
