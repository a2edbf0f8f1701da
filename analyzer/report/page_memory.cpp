#include "analyzer/report/page_memory.h"

#include "analyzer/support/units.h"

#include <fmt/format.h>
#include <unordered_map>

namespace fragtrace::analyzer {
namespace {

class MemoryBuilder {
  public:
    MemoryBuilder(const Timeline& timeline,
                  const ReplayScript& script,
                  PageStacks* stacks,
                  PageDevice* page)
        : timeline_(timeline), script_(script), stacks_(stacks), page_(page) {}

    BlockIndex build() {
        for (const std::uint64_t stream : script_.streams) {
            page_->streams.push_back(stream == 0 ? "default" : fmt::format("{:#x}", stream));
        }
        for (EventIndex i = 0; i < timeline_.events.size(); ++i) {
            const Event& event = timeline_.events[i];
            if (event.kind == EventKind::kEventComplete) {
                complete(event);
            } else if (event.kind == EventKind::kEmptyCache) {  // of all devices
                page_->markers.push_back(
                    {event.time_ns, PageMarkerKind::kEmptyCache, "empty_cache"});
            } else if (event.device == script_.device) {
                add(event, i);
            }
        }
        return std::move(index_);
    }

  private:
    [[nodiscard]] bool blocks_are_pool_blocks() const {
        return script_.source == ScriptSource::kBlocks;
    }

    void add(const Event& event, EventIndex i) {
        if (event.kind != EventKind::kMap) {
            last_map_end_ = 0;
        }
        switch (event.kind) {
            case EventKind::kDeviceAlloc:
                if (!blocks_are_pool_blocks()) {
                    add_block(event, i, event.size_bytes);
                    add_segment(event, i);
                } else if ((event.flags & kFlagFromAllocator) != 0) {
                    add_segment(event, i);
                }
                break;
            case EventKind::kMap:
                add_mapped(event, i);
                break;
            case EventKind::kBlockAlloc:
                add_block(event, i, event.extra);
                break;
            case EventKind::kBlockFree:
                freed_ = timeline_.partner[i];
                break;
            case EventKind::kPendingEvent:
                add_pending(event);
                break;
            default:
                break;
        }
    }

    void add_block(const Event& event, EventIndex i, std::uint64_t size_bytes) {
        PageBlocks& blocks = page_->blocks;
        index_.add(i);
        const EventIndex free = timeline_.partner[i];
        const std::uint64_t freed = free == kNoEvent ? kPageNever : timeline_.events[free].time_ns;
        blocks.start_ns.push_back(event.time_ns);
        blocks.freed_ns.push_back(freed);
        blocks.end_ns.push_back(freed);
        blocks.address.push_back(event.address);
        blocks.size_bytes.push_back(size_bytes);
        blocks.requested_bytes.push_back(event.size_bytes);
        blocks.stack.push_back(stacks_->node_of(event.origin));
        blocks.stream.push_back(event.stream == kNoStream ? std::uint16_t{0} : event.stream);
    }

    void add_segment(const Event& event, EventIndex i) {
        const EventIndex free = timeline_.partner[i];
        page_->segments.push_back(
            {.start_ns = event.time_ns,
             .end_ns = free == kNoEvent ? kPageNever : timeline_.events[free].time_ns,
             .address = event.address,
             .size_bytes = event.size_bytes,
             .stream = event.stream == kNoStream ? std::uint16_t{0} : event.stream,
             .small = blocks_are_pool_blocks() && event.size_bytes == 2 * kMiB});
    }

    // Pages of one map call that also leave together are shown as one segment.
    void add_mapped(const Event& event, EventIndex i) {
        const EventIndex unmap = timeline_.partner[i];
        const std::uint64_t end = unmap == kNoEvent ? kPageNever : timeline_.events[unmap].time_ns;
        if (last_map_end_ == event.address && (unmap == last_map_unmap_ || follows(unmap))) {
            page_->segments.back().size_bytes += event.size_bytes;
            page_->segments.back().end_ns = end;
        } else {
            page_->segments.push_back({.start_ns = event.time_ns,
                                       .end_ns = end,
                                       .address = event.address,
                                       .size_bytes = event.size_bytes,
                                       .page_bytes = event.size_bytes,
                                       .small = event.size_bytes == 2 * kMiB});
        }
        last_map_end_ = event.address + event.size_bytes;
        last_map_unmap_ = unmap;
    }

    // The unmap comes directly after the one of the page before: one unmap call of the pool.
    [[nodiscard]] bool follows(EventIndex unmap) const {
        if (unmap == kNoEvent || last_map_unmap_ == kNoEvent || unmap < last_map_unmap_) {
            return false;
        }
        for (EventIndex i = last_map_unmap_; i < unmap; ++i) {
            const EventKind kind = timeline_.events[i].kind;
            if (kind != EventKind::kUnmap && kind != EventKind::kPhysicalRelease) {
                return false;
            }
        }
        return true;
    }

    // Until its events are seen complete a freed block cannot be reused.
    void add_pending(const Event& event) {
        if (const auto block = index_.find(freed_)) {
            page_->blocks.end_ns[*block] = kPageNever;
            waiting_[event.extra].push_back(*block);
            ++events_left_[*block];
        }
    }

    void complete(const Event& event) {
        const auto found = waiting_.find(event.extra);
        if (found == waiting_.end()) {
            return;
        }
        for (const std::uint32_t block : found->second) {
            if (--events_left_[block] == 0) {
                page_->blocks.end_ns[block] = event.time_ns;
            }
        }
        waiting_.erase(found);
    }

    const Timeline& timeline_;
    const ReplayScript& script_;
    PageStacks* stacks_;
    PageDevice* page_;
    BlockIndex index_;
    EventIndex freed_ = kNoEvent;
    std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> waiting_;  // by event handle
    std::unordered_map<std::uint32_t, std::uint32_t> events_left_;           // by block
    DeviceAddress last_map_end_ = 0;
    EventIndex last_map_unmap_ = kNoEvent;
};

}  // namespace

BlockIndex add_memory(const Timeline& timeline,
                      const ReplayScript& script,
                      PageStacks* stacks,
                      PageDevice* page) {
    return MemoryBuilder(timeline, script, stacks, page).build();
}

}  // namespace fragtrace::analyzer
