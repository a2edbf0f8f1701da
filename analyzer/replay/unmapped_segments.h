// Segments whose memory the program unmaps while the pool has them, and maps again later: the sleep
// mode of vLLM, torch_memory_saver. The pool does not know it, and its blocks stay allocated. In
// the meantime others can use that much more of the card.
//
// Such a segment has an address reservation of its own (model/own_segments.h).
#pragma once

#include "analyzer/model/own_segments.h"
#include "analyzer/replay/replayer.h"
#include "analyzer/replay/script.h"

#include <cstdint>
#include <map>
#include <unordered_set>
#include <vector>

namespace fragtrace::analyzer {

// Adds the steps. All events of the script's device, and those without a device, must be passed in
// order.
class UnmappedSegmentSteps {
  public:
    explicit UnmappedSegmentSteps(ReplayScript* script) : script_(*script) {}

    // `pool`: number of the event's pool.
    void look_at(const Event& event, EventIndex i, std::uint32_t pool) {
        switch (event.kind) {
            case EventKind::kAddressReserve:
                own_.reserve(event);
                break;
            case EventKind::kMap:
                map(event, i);
                break;
            case EventKind::kUnmap:
                if (const auto segment = mapped_.find(event.address); segment != mapped_.end()) {
                    segment->second.unmapped_by = i;
                    unmapped_[event.address] = segment->second;
                    mapped_.erase(segment);
                    new_.push_back(event.address);
                }
                break;
            case EventKind::kPhysicalRelease:
                break;
            case EventKind::kAddressFree:
                end(event.address, i);
                break;
            default:
                add_new();
                if (event.kind == EventKind::kBlockAlloc && pool != 0 && !mapped_.empty()) {
                    note_pool(event.address, pool);
                }
                break;
        }
    }

    // A checkpoint lists the whole state again.
    void end_all(EventIndex checkpoint) {
        while (!unmapped_.empty()) {
            end(unmapped_.begin()->first, checkpoint);
        }
        own_.clear();
        mapped_.clear();
    }

  private:
    struct Segment {
        std::uint64_t size_bytes = 0;
        std::uint32_t pool = 0;  // of its first block
        EventIndex unmapped_by = kNoEvent;
        bool has_step = false;
    };

    void map(const Event& event, EventIndex i) {
        if (!own_.has(event)) {
            return;  // a page of an expandable segment, or memory outside the pool
        }
        Segment segment{.size_bytes = event.size_bytes};
        if (const auto former = unmapped_.find(event.address); former != unmapped_.end()) {
            add(Step::Kind::kSegmentMapped, former->second, i);
            segment.pool = former->second.pool;
            unmapped_.erase(former);
        }
        mapped_[event.address] = segment;
    }

    void note_pool(DeviceAddress address, std::uint32_t pool) {
        auto segment = mapped_.upper_bound(address);
        if (segment != mapped_.begin() &&
            address - (--segment)->first < segment->second.size_bytes &&
            segment->second.pool == 0) {
            segment->second.pool = pool;
        }
    }

    // The segment ends. An allocator that frees a segment first unmaps it: then there is no step.
    void end(DeviceAddress address, EventIndex i) {
        if (const auto segment = unmapped_.find(address); segment != unmapped_.end()) {
            add(Step::Kind::kUnmappedSegmentEnd, segment->second, i);
            unmapped_.erase(segment);
        }
        own_.free(address);
        mapped_.erase(address);
    }

    void add(Step::Kind kind, const Segment& segment, EventIndex i) {
        if (segment.has_step) {
            script_.steps.push_back({.kind = kind,
                                     .event = i,
                                     .block = segment.unmapped_by,
                                     .private_pool = segment.pool,
                                     .value = segment.size_bytes});
        }
    }

    // Segments that were not freed right after they were unmapped.
    void add_new() {
        for (const DeviceAddress address : new_) {
            const auto segment = unmapped_.find(address);
            if (segment != unmapped_.end() && !segment->second.has_step) {
                segment->second.has_step = true;
                add(Step::Kind::kSegmentUnmapped, segment->second, segment->second.unmapped_by);
            }
        }
        new_.clear();
    }

    ReplayScript& script_;
    OwnSegments own_;
    std::map<DeviceAddress, Segment> mapped_;
    std::map<DeviceAddress, Segment> unmapped_;
    std::vector<DeviceAddress> new_;  // unmapped, without a step so far
};

// What the recorded program had unmapped before an event, by private pool (HeapSnapshot).
inline std::map<std::uint32_t, std::uint64_t> unmapped_before(const ReplayScript& script,
                                                              EventIndex event) {
    std::map<std::uint32_t, std::uint64_t> bytes;
    if (!script.steps.may_have({Step::Kind::kSegmentUnmapped})) {
        return bytes;
    }
    for (std::size_t i = 0; i < script.steps.size(); ++i) {
        const Step step = script.steps[i];
        if (step.event >= event) {
            break;
        }
        if (step.kind == Step::Kind::kSegmentUnmapped) {
            bytes[step.private_pool] += step.value;
        } else if (step.kind == Step::Kind::kSegmentMapped ||
                   step.kind == Step::Kind::kUnmappedSegmentEnd) {
            bytes[step.private_pool] -= step.value;
        }
    }
    std::erase_if(bytes, [](const auto& pool) { return pool.second == 0; });
    return bytes;
}

// The memory of such segments in a replay.
class UnmappedSegments {
  public:
    explicit UnmappedSegments(Pool& pool) : pool_(pool) {}

    // With other settings the pool may have less memory than in the recorded run.
    void unmap(const Step& step) {
        const std::uint64_t has = pool_.statistics().reserved.current;
        if (has >= unmapped_bytes_ && has - unmapped_bytes_ >= step.value) {
            pool_.device().give_back(step.value);
            unmapped_bytes_ += step.value;
            unmapped_.insert(step.block);
        }
    }

    // Returns false if the device has too little free memory.
    bool map(const Step& step) {
        if (!unmapped_.contains(step.block)) {
            return true;
        }
        if (!pool_.device().take(step.value)) {
            return false;
        }
        unmapped_bytes_ -= step.value;
        unmapped_.erase(step.block);
        return true;
    }

  private:
    Pool& pool_;
    std::unordered_set<BlockId> unmapped_;  // by unmapping event
    std::uint64_t unmapped_bytes_ = 0;
};

}  // namespace fragtrace::analyzer
