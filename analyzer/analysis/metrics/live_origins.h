// Which code allocated the memory that is in use, for reading a trace event by event. Memory grows
// with the number of live blocks, not with the length of the trace.
#pragma once

#include "analyzer/model/device_layer.h"
#include "analyzer/model/held_by.h"
#include "analyzer/model/pair_map.h"
#include "analyzer/model/recorded_state.h"
#include "analyzer/model/timeline.h"
#include "analyzer/trace/user_frame.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

// Tracks which origin each live block has.
class LiveOrigins {
  public:
    // The number is 0, or the size of each block if no block in use has a stack.
    using Holdings = std::map<std::pair<Origin, std::uint64_t>, HeldBy>;

    explicit LiveOrigins(DeviceId device) : device_(device) {}

    // Call it before the event is applied. `state` has all devices.
    void begin(EventIndex index,
               const Event& event,
               const Origin& origin,
               const RecordedState& state) {
        const bool block = event.kind == EventKind::kBlockAlloc;
        if (event.device == device_ && (block || is_device_allocation(event.kind))) {
            add(index, event, origin);
        }
        if (event.kind == EventKind::kBlockLabel) {
            label(event);
        }
        // Blocks are gone if another block has taken their place. Forget them now and then.
        if (births_.size() - free_.size() > 2 * held_.size() + kept_ + kSlack) {
            forget_gone(state);
        }
    }

    // Call it after the event. A block that waits for other streams is remembered until its place
    // is taken. So is memory that can outlive its handle.
    void end(const Event& event) {
        if (event.kind == EventKind::kBlockFree && (event.flags & kFlagPending) == 0) {
            forget(EventKind::kBlockAlloc, event.address);
        } else if (event.kind == EventKind::kDeviceFree || event.kind == EventKind::kAsyncFree) {
            forget(EventKind::kDeviceAlloc, event.address);
            forget(EventKind::kAsyncAlloc, event.address);
        }
    }

    // Memory in use right now, by origin. `looked_at`, if not null, is increased by the number of
    // blocks.
    [[nodiscard]] Holdings holders(const RecordedState& state,
                                   std::uint64_t* looked_at = nullptr) const {
        Holdings by_origin;
        const HeapSnapshot heap = state.snapshot(device_);
        if (looked_at != nullptr) {
            *looked_at += heap.blocks.size();
        }
        const PairMap by_event = births_by_event();
        const auto origin_of = [&](const HeapBlock& block) {
            const std::uint32_t birth = by_event.find(block.allocated_by, 0);
            return birth != PairMap::kAbsent ? births_[birth].origin : Origin{};
        };
        const bool by_size =
            std::none_of(heap.blocks.begin(), heap.blocks.end(), [&](const HeapBlock& block) {
                return block.state != BlockState::kFree && has_stack(origin_of(block));
            });
        for (const HeapBlock& block : heap.blocks) {
            if (block.state != BlockState::kFree) {
                by_origin[by_size ? std::pair(Origin{}, block.size_bytes)
                                  : std::pair(origin_of(block), std::uint64_t{0})]
                    .add(block.size_bytes, 1);
            }
        }
        return by_origin;
    }

  private:
    struct Birth {
        EventIndex event = kNoEvent;  // kNoEvent: the entry is free
        Origin origin;
    };

    static constexpr std::size_t kSlack = 1024;

    // The address column of an event is an address or a handle, so the kind is part of the key.
    static constexpr std::uint32_t minor_of(EventKind kind) {
        return static_cast<std::uint32_t>(kind);
    }

    void add(EventIndex index, const Event& event, const Origin& origin) {
        auto entry = static_cast<std::uint32_t>(births_.size());
        if (free_.empty()) {
            births_.emplace_back();
        } else {
            entry = free_.back();
            free_.pop_back();
        }
        births_[entry] = {index, origin};
        held_.set(event.address, minor_of(event.kind), entry);
    }

    void forget(EventKind kind, DeviceAddress address) {
        if (const std::uint32_t entry = held_.take(address, minor_of(kind));
            entry != PairMap::kAbsent) {
            remove(entry);
        }
    }

    void remove(std::uint32_t entry) {
        births_[entry].event = kNoEvent;
        free_.push_back(entry);
    }

    void label(const Event& event) {
        const std::uint32_t entry = held_.find(event.address, minor_of(EventKind::kBlockAlloc));
        if (entry != PairMap::kAbsent && event.size_bytes < kUnknown32) {
            births_[entry].origin.label = static_cast<std::uint32_t>(event.size_bytes);
        }
    }

    // Event -> number in births_.
    [[nodiscard]] PairMap births_by_event() const {
        PairMap by_event;
        for (std::uint32_t entry = 0; entry < births_.size(); ++entry) {
            if (births_[entry].event != kNoEvent) {
                by_event.set(births_[entry].event, 0, entry);
            }
        }
        return by_event;
    }

    void forget_gone(const RecordedState& state) {
        std::vector<bool> kept(births_.size());
        held_.for_each([&kept](std::uint32_t entry) { kept[entry] = true; });
        const PairMap by_event = births_by_event();
        for (const HeapBlock& block : state.snapshot(device_).blocks) {
            if (const std::uint32_t entry = by_event.find(block.allocated_by, 0);
                entry != PairMap::kAbsent) {
                kept[entry] = true;
            }
        }
        for (std::uint32_t entry = 0; entry < births_.size(); ++entry) {
            if (births_[entry].event != kNoEvent && !kept[entry]) {
                remove(entry);
            }
        }
        kept_ = 2 * (births_.size() - free_.size());
    }

    DeviceId device_;
    std::vector<Birth> births_;
    std::vector<std::uint32_t> free_;  // entries of births_ that can be used again
    // (address, kind) -> number in births_; includes blocks that wait for streams.
    PairMap held_;
    std::size_t kept_ = 0;
};

// Most bytes first. Adds the origins to the tables, by whose numbers the entries name them. Entries
// have a label only if no block has a stack: the size of the blocks.
inline std::vector<HeldBy> list_of(LiveOrigins::Holdings holdings, Timeline* tables) {
    std::vector<HeldBy> list;
    for (auto& [key, holder] : holdings) {
        holder.origin = static_cast<OriginId>(tables->origins.size());
        holder.label = key.second != 0 ? label_by_size(key.second) : "";
        tables->origins.push_back(key.first);
        list.push_back(std::move(holder));
    }
    std::stable_sort(list.begin(), list.end(), [](const HeldBy& a, const HeldBy& b) {
        return a.bytes > b.bytes;
    });
    return list;
}

}  // namespace fragtrace::analyzer
