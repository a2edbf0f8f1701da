// Base class of the simpler pools: segments from the driver, divided into blocks without gaps.
//
// A derived pool decides which free block serves a request, when to grow and which free blocks may
// merge. This class manages blocks, ids and sums. Addresses only increase, with a gap after each
// segment, so rules that compare addresses see segments in the order of their allocation.
// Cross-stream events are ignored. Not thread-safe.
#pragma once

#include "analyzer/pools/block_table.h"
#include "analyzer/pools/free_set.h"
#include "analyzer/pools/pool.h"
#include "analyzer/support/copied_members.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

inline constexpr DeviceAddress kFirstSegmentAddress = 0x7'0000'0000;

struct PoolBlock {
    std::uint64_t offset_bytes = 0;  // within its segment
    std::uint64_t size_bytes = 0;
    std::uint64_t requested_bytes = 0;  // of live blocks
    std::uint32_t segment = 0;
    BlockIndex previous = kNoBlock;  // neighbours in the segment
    BlockIndex next = kNoBlock;
    BlockId id = 0;          // of live blocks
    std::uint32_t list = 0;  // the FreeBlocks list of a free block, or of a live one after its free
    StreamId stream = 0;     // stream of the last request
    bool free = true;
};

// Free blocks by size, in independent lists. PoolBlock::list is the list of a block.
class FreeBlocks {
  public:
    using List = FreeSets::SetIndex;

    // Which of several equally large blocks is the first. Older segments are always first.
    enum class Ties : std::uint8_t { kLowestFirst, kHighestFirst };

    // Creates list 0.
    FreeBlocks() { add_list(); }

    List add_list(Ties ties = Ties::kLowestFirst) {
        ties_.push_back(ties);
        return sets_.add_set();
    }

    void insert(BlockIndex index, const PoolBlock& block) {
        sets_.insert(block.list,
                     key(block.size_bytes, block.segment, block.offset_bytes, block.list),
                     index);
    }

    void erase(BlockIndex index) { sets_.erase(index); }

    // Returns the best fit, or kNoBlock.
    [[nodiscard]] BlockIndex at_least(std::uint64_t size_bytes, List list = 0) const {
        return sets_.lower_bound(list, FreeKey::make(size_bytes, 0, 0));
    }

    // The free block of this size at this place, or kNoBlock. `blocks` has all blocks of the pool.
    [[nodiscard]] BlockIndex at(const std::vector<PoolBlock>& blocks,
                                std::uint64_t size_bytes,
                                const Placement& place,
                                List list) const {
        const BlockIndex index =
            sets_.lower_bound(list, key(size_bytes, place.segment, place.offset_bytes, list));
        return index != kNoBlock && blocks[index].segment == place.segment &&
                       blocks[index].offset_bytes == place.offset_bytes &&
                       blocks[index].size_bytes == size_bytes
                   ? index
                   : kNoBlock;
    }

    // Returns kNoBlock if the list is empty.
    [[nodiscard]] BlockIndex largest(List list = 0) const { return sets_.last(list); }

    [[nodiscard]] std::size_t size(List list) const { return sets_.size(list); }

    // In ascending order.
    [[nodiscard]] std::vector<BlockIndex> all(List list) const {
        std::vector<BlockIndex> indices;
        sets_.append_to(list, indices);
        return indices;
    }

  private:
    [[nodiscard]] FreeKey key(std::uint64_t size_bytes,
                              std::uint32_t segment,
                              std::uint64_t offset_bytes,
                              List list) const {
        constexpr std::uint64_t kMostOffset = (std::uint64_t{1} << 48) - 1;
        return FreeKey::make(size_bytes,
                             segment,
                             ties_[list] == Ties::kLowestFirst
                                 ? offset_bytes
                                 : kMostOffset - std::min(offset_bytes, kMostOffset));
    }

    FreeSets sets_;
    std::vector<Ties> ties_;
};

class SegmentPool : public Pool {
  public:
    [[nodiscard]] std::string config() const final { return config_; }

    bool release(BlockId block, const std::vector<PendingOn>& pending) final;

    // Allocates the other pool's live blocks again, in the order of their allocation. Their old
    // positions have no meaning in this pool.
    bool adopt(const HeapSnapshot& heap) final;

    [[nodiscard]] const PoolStatistics& statistics() const final { return statistics_; }

    [[nodiscard]] std::optional<Placement> find(BlockId block) const final;
    [[nodiscard]] HeapSnapshot snapshot() const final;

    // Where the next request's block lies in the recorded run. A pool that may take any of several
    // equal free blocks takes this one, if it is among them.
    void prefer(const Placement& place) { preferred_place_ = place; }

    // Requests that were served by another block because of prefer().
    [[nodiscard]] std::uint64_t preferred() const { return preferred_; }

    std::vector<DriverCall> take_driver_calls() final;

    [[nodiscard]] Device& device() final { return *device_; }

  protected:
    static constexpr std::uint32_t kNoSegment = 0xffffffffu;

    SegmentPool(std::string config, std::unique_ptr<Device> device)
        : config_(std::move(config)), device_(std::move(device)) {}

    // ---- what a derived pool decides ---- A block was freed: merge it with its neighbours and
    // insert it into a list.
    virtual void freed(BlockIndex block) = 0;
    // All segments are gone: clear all lists.
    virtual void forget() = 0;

    // ---- what a derived pool may use ----
    [[nodiscard]] PoolBlock& block(BlockIndex index) { return blocks_[index]; }

    [[nodiscard]] const PoolBlock& block(BlockIndex index) const { return blocks_[index]; }

    // Size of a block in bytes; 0 for kNoBlock.
    [[nodiscard]] std::uint64_t size_of(BlockIndex index) const {
        return index == kNoBlock ? 0 : blocks_[index].size_bytes;
    }

    // The best fit for the current request: the lowest of several equal blocks, unless prefer()
    // names another one. kNoBlock = none.
    BlockIndex best_fit(const FreeBlocks& free_blocks,
                        std::uint64_t size_bytes,
                        FreeBlocks::List list = 0);

    // Number of reserved segments.
    [[nodiscard]] std::size_t segment_count() const { return segments_.size(); }

    [[nodiscard]] std::uint64_t reserved_bytes() const { return statistics_.reserved.current; }

    // Bytes that release_free_segments() would release.
    [[nodiscard]] std::uint64_t free_segment_bytes() const;

    // Allocates a segment from the driver, as one free block. Returns kNoBlock if the driver
    // refuses.
    BlockIndex add_segment(std::uint64_t size_bytes, StreamId stream);
    // Maps more memory at the end of the newest segment, as a free block of its own. Returns
    // kNoBlock if the driver refuses.
    BlockIndex extend_segment(std::uint32_t segment, std::uint64_t size_bytes);
    // Releases all segments that consist of one free block, except the segment `kept`. Those blocks
    // must be in `free_blocks`.
    void release_free_segments(FreeBlocks* free_blocks, std::uint32_t kept = kNoSegment);

    // Splits a free block. The low part keeps its index. Returns the index of the high part.
    BlockIndex split(BlockIndex low, std::uint64_t low_bytes);
    // Merges a block with its successor, whose index becomes invalid.
    void join_with_next(BlockIndex low);
    // Merges a free block with its free neighbours of the same list and inserts it into
    // `free_blocks`.
    void file(BlockIndex index, FreeBlocks* free_blocks);
    // All blocks of the list `from` change to `to`, where free neighbours merge.
    void move_list(FreeBlocks::List from, FreeBlocks::List to, FreeBlocks* free_blocks);
    // Serves a request with a whole block.
    AllocateResult hand_out(BlockIndex index, const Request& request, Outcome outcome);
    AllocateResult out_of_memory();

  private:
    struct Segment {
        DeviceAddress address = 0;
        std::uint64_t size_bytes = 0;
        BlockIndex first = kNoBlock;
        BlockIndex last = kNoBlock;
        StreamId stream = 0;
    };

    BlockIndex new_block(const PoolBlock& block);
    // Adds the segment to free_segments_ if it is one free block.
    void note_if_free(std::uint32_t segment);

    [[nodiscard]] bool is_free(const Segment& segment) const {
        return segment.first == segment.last && blocks_[segment.first].free;
    }

    bool take(DriverCall::Kind kind, std::uint64_t size_bytes);

    std::string config_;
    ClonePtr<Device> device_;
    std::vector<PoolBlock> blocks_;
    std::vector<BlockIndex> unused_;  // unused entries of blocks_
    BlockTable live_;
    std::map<std::uint32_t, Segment> segments_;
    // Segments that were one free block after the last change of their first block.
    std::set<std::uint32_t> free_segments_;
    std::uint32_t next_segment_ = 0;
    DeviceAddress next_address_ = kFirstSegmentAddress;
    PoolStatistics statistics_;
    std::optional<Placement> preferred_place_;  // of the current request
    std::uint64_t preferred_ = 0;
    NotCopied<std::vector<DriverCall>> driver_calls_;
};

}  // namespace fragtrace::analyzer
