// Which code allocated the memory that is in use, for reading a trace event by event. Memory grows
// with the number of live blocks, not with the length of the trace.
#pragma once

#include "analyzer/model/device_layer.h"
#include "analyzer/model/held_by.h"
#include "analyzer/model/recorded_state.h"
#include "analyzer/model/timeline.h"
#include "analyzer/trace/user_frame.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
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
            births_[index] = origin;
            held_[{event.kind, event.address}] = index;
        }
        if (event.kind == EventKind::kBlockLabel) {
            label(event);
        }
        // Blocks are gone if another block has taken their place. Forget them now and then.
        if (births_.size() > 2 * held_.size() + kept_ + kSlack) {
            forget_gone(state);
        }
    }

    // Call it after the event. A block that waits for other streams is remembered until its place
    // is taken. So is memory that can outlive its handle.
    void end(const Event& event) {
        if (event.kind == EventKind::kBlockFree && (event.flags & kFlagPending) == 0) {
            forget({EventKind::kBlockAlloc, event.address});
        } else if (event.kind == EventKind::kDeviceFree || event.kind == EventKind::kAsyncFree) {
            forget({EventKind::kDeviceAlloc, event.address});
            forget({EventKind::kAsyncAlloc, event.address});
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
        const auto origin_of = [this](const HeapBlock& block) {
            const auto birth = births_.find(block.allocated_by);
            return birth != births_.end() ? birth->second : Origin{};
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
    using Place = std::pair<EventKind, DeviceAddress>;  // an address, or a handle

    static constexpr std::size_t kSlack = 1024;

    void forget(const Place& place) {
        if (const auto found = held_.find(place); found != held_.end()) {
            births_.erase(found->second);
            held_.erase(found);
        }
    }

    void label(const Event& event) {
        const auto block = held_.find({EventKind::kBlockAlloc, event.address});
        if (block != held_.end() && event.size_bytes < kUnknown32) {
            births_[block->second].label = static_cast<std::uint32_t>(event.size_bytes);
        }
    }

    void forget_gone(const RecordedState& state) {
        std::unordered_map<EventIndex, Origin> kept;
        for (const auto& [place, index] : held_) {
            kept.insert(*births_.find(index));
        }
        for (const HeapBlock& block : state.snapshot(device_).blocks) {
            if (const auto birth = births_.find(block.allocated_by); birth != births_.end()) {
                kept.insert(*birth);
            }
        }
        births_ = std::move(kept);
        kept_ = 2 * births_.size();
    }

    DeviceId device_;
    std::unordered_map<EventIndex, Origin> births_;
    std::map<Place, EventIndex> held_;  // includes blocks that wait for streams
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
