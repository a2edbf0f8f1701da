#include "analyzer/report/page/page_memory.h"

#include "analyzer/model/recorded_state.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <map>

namespace fragtrace::analyzer {
namespace {

// How often a private pool may be taken up again and be let go before the page stops looking.
constexpr std::size_t kMostPoolChanges = 256;

std::string pool_name(const Timeline& timeline, std::uint32_t number) {
    const auto known = timeline.pools.find(number);
    const bool of_graph = known != timeline.pools.end() && known->second.is_graph();
    return fmt::format("{} {}", of_graph ? "CUDA graph pool" : "private pool", number);
}

class MemoryBuilder : public RecordedWatch {
  public:
    MemoryBuilder(const Timeline& timeline,
                  const ReplayScript& script,
                  PageStacks* stacks,
                  PageDevice* page)
        : timeline_(timeline), script_(script), state_(timeline), stacks_(stacks), page_(page) {}

    BlockIndex build() {
        for (const std::uint64_t stream : script_.streams) {
            page_->streams.push_back(stream == 0 ? "default" : fmt::format("{:#x}", stream));
        }
        page_->pools.push_back({"", {}});  // the default one
        state_.watch(script_.device, this);
        for (EventIndex i = 0; i < timeline_.events.size(); ++i) {
            const Event& event = timeline_.events[i];
            now_ns_ = event.time_ns;
            if (event.kind == EventKind::kEmptyCache) {  // of all devices
                page_->markers.push_back({now_ns_, PageMarkerKind::kEmptyCache, "empty_cache"});
            }
            state_.advance();
            take_others();
        }
        for (const auto& [address, segment] : live_segments_) {
            tell_owner(segment, owner_at(address));
        }
        return std::move(index_);
    }

    void block_begins(const RecordedBlock& block) override {
        PageBlocks& blocks = page_->blocks;
        const auto row = static_cast<std::uint32_t>(blocks.size());
        index_.add(block.allocated_by, row);
        live_blocks_[block.address] = row;
        const Event& born = timeline_.events[block.allocated_by];
        // What a checkpoint lists has the times of its allocations, in any order.
        blocks.start_ns.push_back(
            blocks.start_ns.empty() ? now_ns_ : std::max(now_ns_, blocks.start_ns.back()));
        blocks.freed_ns.push_back(kPageNever);
        blocks.end_ns.push_back(kPageNever);
        blocks.address.push_back(block.address);
        blocks.size_bytes.push_back(block.size_bytes);
        blocks.requested_bytes.push_back(block.requested_bytes);
        blocks.stack.push_back(stacks_->node_of(born.origin));
        blocks.stream.push_back(block.stream == kNoStream ? std::uint16_t{0} : block.stream);
    }

    // Until its events are seen complete a freed block cannot be reused.
    void block_waits(const RecordedBlock& block) override {
        page_->blocks.freed_ns[live_blocks_.at(block.address)] = now_ns_;
    }

    void block_ends(const RecordedBlock& block) override { end_block(take_row(block.address)); }

    void segment_begins(const RecordedSegment& segment) override {
        live_segments_[segment.address] = static_cast<std::uint32_t>(page_->segments.size());
        const std::uint64_t unit = segment.expandable() ? segment.page_bytes : segment.size_bytes;
        page_->segments.push_back(
            {.start_ns = now_ns_,
             .address = segment.address,
             .size_bytes = segment.size_bytes,
             .page_bytes = segment.page_bytes,
             .small = state_.has_block_layer(script_.device) && unit == 2 * kMiB});
    }

    void range_ends(const RecordedSegment* segment,
                    DeviceAddress begin,
                    DeviceAddress end) override {
        auto at = live_segments_.lower_bound(begin);
        if (at != live_segments_.begin() && end_of(std::prev(at)->second) > begin) {
            --at;
        }
        while (at != live_segments_.end() && at->first < end) {
            const std::uint32_t ended = at->second;
            // Only the first of them is known to lie in `segment`.
            tell_owner(ended, at->first <= begin ? segment : owner_at(at->first));
            page_->segments[ended].end_ns = now_ns_;
            at = live_segments_.erase(at);
            keep_rest(ended, begin, end);
        }
    }

    void all_ends() override {
        for (const auto& [address, row] : live_blocks_) {
            end_block(row);
        }
        live_blocks_.clear();
        for (const auto& [address, segment] : live_segments_) {
            tell_owner(segment, owner_at(address));
            page_->segments[segment].end_ns = now_ns_;
        }
        live_segments_.clear();
    }

    void pool_changes(std::uint32_t private_pool, bool released) override {
        std::vector<std::uint64_t>& changes = page_->pools[pool_of(private_pool)].changes_ns;
        // Held, released, held and so on; after too many changes it stays held.
        const bool next_releases = changes.size() % 2 == 0;
        if (released == next_releases && changes.size() < kMostPoolChanges) {
            changes.push_back(now_ns_);
        }
    }

  private:
    std::uint32_t take_row(DeviceAddress address) {
        const auto found = live_blocks_.find(address);
        const std::uint32_t row = found->second;
        live_blocks_.erase(found);
        return row;
    }

    void end_block(std::uint32_t row) {
        page_->blocks.end_ns[row] = now_ns_;
        if (page_->blocks.freed_ns[row] == kPageNever) {
            page_->blocks.freed_ns[row] = now_ns_;
        }
    }

    [[nodiscard]] std::uint64_t end_of(std::uint32_t segment) const {
        return page_->segments[segment].address + page_->segments[segment].size_bytes;
    }

    // What a record that is out of order leaves of a segment goes on as another.
    void keep_rest(std::uint32_t ended, DeviceAddress begin, DeviceAddress end) {
        const PageSegment whole = page_->segments[ended];
        const auto keep = [&](DeviceAddress from, DeviceAddress to) {
            if (from < to) {
                PageSegment rest = whole;
                rest.start_ns = now_ns_;
                rest.end_ns = kPageNever;
                rest.address = from;
                rest.size_bytes = to - from;
                live_segments_[from] = static_cast<std::uint32_t>(page_->segments.size());
                page_->segments.push_back(rest);
            }
        };
        const DeviceAddress whole_end = whole.address + whole.size_bytes;
        keep(whole.address, std::min(begin, whole_end));
        keep(std::max(end, whole.address), whole_end);
    }

    [[nodiscard]] const RecordedSegment* owner_at(DeviceAddress address) const {
        return state_.segment_before(script_.device, address);
    }

    // Whose a segment is shows with its first block, at the latest.
    void tell_owner(std::uint32_t segment, const RecordedSegment* owner) {
        if (owner != nullptr) {
            page_->segments[segment].stream =
                owner->stream == kNoStream ? std::uint16_t{0} : owner->stream;
            page_->segments[segment].pool = pool_of(owner->private_pool);
        }
    }

    std::uint32_t pool_of(std::uint32_t number) {
        if (number == 0) {
            return 0;
        }
        const auto next = static_cast<std::uint32_t>(page_->pools.size());
        const auto [found, fresh] = pools_.try_emplace(number, next);
        if (fresh) {
            page_->pools.push_back({pool_name(timeline_, number), {}});
        }
        return found->second;
    }

    // This process's memory outside the pool, and what the driver's last report leaves to nobody in
    // it: the context, libraries that were not seen, other processes.
    void take_others() {
        const MemoryTotals& totals = state_.totals(script_.device);
        const MemorySample& sample = state_.sample(script_.device);
        std::uint64_t bytes = totals.other;
        if (sample.event != kNoEvent) {
            const std::uint64_t known = sample.free_bytes + sample.own_bytes;
            bytes += sample.total_bytes - std::min(sample.total_bytes, known);
        }
        PageOthers& others = page_->others;
        if (bytes != (others.bytes.empty() ? 0 : others.bytes.back())) {
            others.time_ns.push_back(now_ns_);
            others.bytes.push_back(bytes);
        }
    }

    const Timeline& timeline_;
    const ReplayScript& script_;
    RecordedState state_;
    PageStacks* stacks_;
    PageDevice* page_;
    std::uint64_t now_ns_ = 0;
    BlockIndex index_;
    std::unordered_map<DeviceAddress, std::uint32_t> live_blocks_;  // rows
    std::map<DeviceAddress, std::uint32_t> live_segments_;          // into PageDevice::segments
    std::unordered_map<std::uint32_t, std::uint32_t> pools_;        // by number, into the page's
};

}  // namespace

BlockIndex add_memory(const Timeline& timeline,
                      const ReplayScript& script,
                      PageStacks* stacks,
                      PageDevice* page) {
    return MemoryBuilder(timeline, script, stacks, page).build();
}

}  // namespace fragtrace::analyzer
