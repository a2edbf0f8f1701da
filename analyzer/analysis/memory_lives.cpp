#include "analyzer/analysis/memory_lives.h"

#include "analyzer/model/recorded_state.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace fragtrace::analyzer {
namespace {

// Limits how often a private pool's change between kept and released is noted.
constexpr std::size_t kMostPoolChanges = 256;

class MemoryBuilder : public RecordedWatch {
  public:
    MemoryBuilder(const Timeline& timeline,
                  DeviceId device,
                  const std::function<std::uint32_t(OriginId)>& stack_of,
                  LifeClock clock)
        : timeline_(timeline),
          device_(device),
          stack_of_(stack_of),
          clock_(clock),
          state_(timeline) {}

    MemoryLives build() {
        lives_.pools.emplace_back();
        state_.watch(device_, this);
        for (EventIndex i = 0; i < timeline_.events.size(); ++i) {
            const Event& event = timeline_.events[i];
            now_ns_ = clock_ == LifeClock::kEvents ? i : event.time_ns;
            if (event.kind == EventKind::kEmptyCache) {  // on any device
                lives_.emptied_ns.push_back(now_ns_);
            }
            state_.advance();
            take_others();
        }
        for (const auto& [address, segment] : live_segments_) {
            tell_owner(segment, owner_at(address));
        }
        return std::move(lives_);
    }

    void block_begins(const RecordedBlock& block) override {
        BlockLives& blocks = lives_.blocks;
        const auto row = static_cast<std::uint32_t>(blocks.size());
        lives_.index.add(block.allocated_by, row);
        live_blocks_[block.address] = row;
        const Event& born = timeline_.events[block.allocated_by];
        // A checkpoint lists its blocks with the times of their allocations, in any order. Clamp
        // them, so that start times ascend.
        blocks.start_ns.push_back(
            blocks.start_ns.empty() ? now_ns_ : std::max(now_ns_, blocks.start_ns.back()));
        blocks.freed_ns.push_back(kNeverNs);
        blocks.end_ns.push_back(kNeverNs);
        blocks.address.push_back(block.address);
        blocks.size_bytes.push_back(block.size_bytes);
        blocks.requested_bytes.push_back(block.requested_bytes);
        blocks.stack.push_back(stack_of_(born.origin));
        blocks.stream.push_back(block.stream);
    }

    // A freed block cannot be reused until its CUDA events have completed.
    void block_waits(const RecordedBlock& block) override {
        lives_.blocks.freed_ns[live_blocks_.at(block.address)] = now_ns_;
    }

    void block_ends(const RecordedBlock& block) override { end_block(take_row(block.address)); }

    void segment_begins(const RecordedSegment& segment) override {
        live_segments_[segment.address] = static_cast<std::uint32_t>(lives_.segments.size());
        const std::uint64_t unit = segment.expandable() ? segment.page_bytes : segment.size_bytes;
        lives_.segments.push_back({.start_ns = now_ns_,
                                   .address = segment.address,
                                   .size_bytes = segment.size_bytes,
                                   .page_bytes = segment.page_bytes,
                                   .small = state_.has_block_layer(device_) && unit == 2 * kMiB});
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
            lives_.segments[ended].end_ns = now_ns_;
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
            lives_.segments[segment].end_ns = now_ns_;
        }
        live_segments_.clear();
    }

    void pool_changes(std::uint32_t private_pool, bool released) override {
        std::vector<std::uint64_t>& changes = lives_.pools[pool_of(private_pool)].changes_ns;
        // Changes alternate: kept, released, kept, ... Too many changes are dropped, which leaves
        // the pool kept.
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
        lives_.blocks.end_ns[row] = now_ns_;
        if (lives_.blocks.freed_ns[row] == kNeverNs) {
            lives_.blocks.freed_ns[row] = now_ns_;
        }
    }

    [[nodiscard]] std::uint64_t end_of(std::uint32_t segment) const {
        return lives_.segments[segment].address + lives_.segments[segment].size_bytes;
    }

    // If a recording out of order ends only part of a segment, the rest continues as another
    // segment.
    void keep_rest(std::uint32_t ended, DeviceAddress begin, DeviceAddress end) {
        const SegmentLife whole = lives_.segments[ended];
        const auto keep = [&](DeviceAddress from, DeviceAddress to) {
            if (from < to) {
                SegmentLife rest = whole;
                rest.start_ns = now_ns_;
                rest.end_ns = kNeverNs;
                rest.address = from;
                rest.size_bytes = to - from;
                live_segments_[from] = static_cast<std::uint32_t>(lives_.segments.size());
                lives_.segments.push_back(rest);
            }
        };
        const DeviceAddress whole_end = whole.address + whole.size_bytes;
        keep(whole.address, std::min(begin, whole_end));
        keep(std::max(end, whole.address), whole_end);
    }

    [[nodiscard]] const RecordedSegment* owner_at(DeviceAddress address) const {
        return state_.segment_before(device_, address);
    }

    // A segment's stream and pool are known at the latest once its first block is allocated.
    void tell_owner(std::uint32_t segment, const RecordedSegment* owner) {
        if (owner != nullptr) {
            lives_.segments[segment].stream = owner->stream;
            lives_.segments[segment].pool = pool_of(owner->private_pool);
        }
    }

    std::uint32_t pool_of(std::uint32_t number) {
        if (number == 0) {
            return 0;
        }
        const auto next = static_cast<std::uint32_t>(lives_.pools.size());
        const auto [found, fresh] = pools_.try_emplace(number, next);
        if (fresh) {
            lives_.pools.push_back({number, {}});
        }
        return found->second;
    }

    // Notes memory outside the pool: this process's own, plus memory without a known owner in the
    // driver's last report (context, unseen libraries, other processes).
    void take_others() {
        const MemoryTotals& totals = state_.totals(device_);
        const MemorySample& sample = state_.sample(device_);
        std::uint64_t bytes = totals.other;
        if (sample.event != kNoEvent) {
            const std::uint64_t known = sample.free_bytes + sample.own_bytes;
            bytes += sample.total_bytes - std::min(sample.total_bytes, known);
        }
        lives_.others.set(now_ns_, bytes);
    }

    const Timeline& timeline_;
    DeviceId device_;
    const std::function<std::uint32_t(OriginId)>& stack_of_;
    LifeClock clock_;
    RecordedState state_;
    MemoryLives lives_;
    std::uint64_t now_ns_ = 0;
    std::unordered_map<DeviceAddress, std::uint32_t> live_blocks_;  // address: row
    // Address: index into MemoryLives::segments.
    std::map<DeviceAddress, std::uint32_t> live_segments_;
    // Number: index into MemoryLives::pools.
    std::unordered_map<std::uint32_t, std::uint32_t> pools_;
};

}  // namespace

MemoryLives memory_lives(const Timeline& timeline,
                         DeviceId device,
                         const std::function<std::uint32_t(OriginId)>& stack_of,
                         LifeClock clock) {
    return MemoryBuilder(timeline, device, stack_of, clock).build();
}

}  // namespace fragtrace::analyzer
