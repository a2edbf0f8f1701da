// What the simpler pools have in common: segments from the driver, cut into blocks that tile them.
//
// A pool derived from it decides which free block serves a request, when to grow and which free
// blocks may be joined; this class keeps the tiling, the ids and the sums. Rules that go by address
// see segments in the order in which they were obtained: addresses only ever increase, with a gap
// after each segment. Cross-stream events count for nothing here. Not thread-safe.
#pragma once

#include "analyzer/pools/block_table.h"
#include "analyzer/pools/free_set.h"
#include "analyzer/pools/pool.h"
#include "analyzer/support/copied_members.h"
#include "analyzer/support/units.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

inline constexpr DeviceAddress kFirstSegmentAddress = 0x7'0000'0000;

struct PoolBlock {
    std::uint64_t offset_bytes = 0;  // in its segment
    std::uint64_t size_bytes = 0;
    std::uint64_t requested_bytes = 0;  // live blocks
    std::uint32_t segment = 0;
    BlockIndex previous = kNoBlock;  // neighbours in the segment
    BlockIndex next = kNoBlock;
    BlockId id = 0;          // live blocks
    std::uint32_t list = 0;  // of FreeBlocks, while it is free
    StreamId stream = 0;     // of the last request
    bool free = true;
};

// Free blocks by size, the lowest address first among equals. In lists that know nothing of each
// other: a block is in that of PoolBlock::list.
class FreeBlocks {
  public:
    using List = FreeSets::SetIndex;

    // List 0 is there from the start.
    FreeBlocks() { sets_.add_set(); }

    List add_list() { return sets_.add_set(); }

    void insert(BlockIndex index, const PoolBlock& block) {
        sets_.insert(
            block.list, FreeKey::make(block.size_bytes, block.segment, block.offset_bytes), index);
    }

    void erase(BlockIndex index) { sets_.erase(index); }

    // The best fit, or kNoBlock.
    [[nodiscard]] BlockIndex at_least(std::uint64_t size_bytes, List list = 0) const {
        return sets_.lower_bound(list, FreeKey::make(size_bytes, 0, 0));
    }

    // kNoBlock: there is none.
    [[nodiscard]] BlockIndex largest(List list = 0) const { return sets_.last(list); }

    [[nodiscard]] std::size_t size(List list) const { return sets_.size(list); }

    // Ascending.
    [[nodiscard]] std::vector<BlockIndex> all(List list) const {
        std::vector<BlockIndex> indices;
        sets_.append_to(list, indices);
        return indices;
    }

  private:
    FreeSets sets_;
};

class SegmentPool : public Pool {
  public:
    [[nodiscard]] std::string config() const final { return config_; }

    bool release(BlockId block, const std::vector<PendingOn>& pending) final;

    // What another pool held is asked for anew, in the order in which it was allocated: how it lay
    // there has no meaning here.
    bool adopt(const HeapSnapshot& heap) final;

    [[nodiscard]] const PoolStatistics& statistics() const final { return statistics_; }

    [[nodiscard]] std::optional<Placement> find(BlockId block) const final;
    [[nodiscard]] HeapSnapshot snapshot() const final;

    std::vector<DriverCall> take_driver_calls() final;

    [[nodiscard]] Device& device() final { return *device_; }

  protected:
    SegmentPool(std::string config, std::unique_ptr<Device> device)
        : config_(std::move(config)), device_(std::move(device)) {}

    // ---- what a derived pool decides ----
    // A block was given back: join it with its neighbours and file it.
    virtual void freed(BlockIndex block) = 0;
    // All segments are gone: forget what was filed.
    virtual void forget() = 0;

    // ---- what it may do ----
    [[nodiscard]] PoolBlock& block(BlockIndex index) { return blocks_[index]; }

    [[nodiscard]] const PoolBlock& block(BlockIndex index) const { return blocks_[index]; }

    // Of a free block, or 0 for kNoBlock.
    [[nodiscard]] std::uint64_t size_of(BlockIndex index) const {
        return index == kNoBlock ? 0 : blocks_[index].size_bytes;
    }

    // Segments that are held.
    [[nodiscard]] std::size_t segment_count() const { return segments_.size(); }

    [[nodiscard]] std::uint64_t reserved_bytes() const { return statistics_.reserved.current; }

    // What release_free_segments() would give back.
    [[nodiscard]] std::uint64_t free_segment_bytes() const;

    // Asks the driver for a segment, which is one free block then; kNoBlock: refused.
    BlockIndex add_segment(std::uint64_t size_bytes, StreamId stream);
    // Maps more at the end of the newest segment, as one free block of its own; kNoBlock: refused.
    BlockIndex extend_segment(std::uint32_t segment, std::uint64_t size_bytes);
    // Gives the segments back that are one free block, which is filed in `free_blocks`.
    void release_free_segments(FreeBlocks* free_blocks);

    // Cuts a free block in two; the low part keeps the index. Gives the index of the high part.
    BlockIndex split(BlockIndex low, std::uint64_t low_bytes);
    // Joins a block with its successor, whose index is gone then.
    void join_with_next(BlockIndex low);
    // Files a free block in its list of `free_blocks`, joined with its free neighbours of that
    // list.
    void file(BlockIndex index, FreeBlocks* free_blocks);
    // Hands out a whole block.
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

    [[nodiscard]] bool is_free(const Segment& segment) const {
        return segment.first == segment.last && blocks_[segment.first].free;
    }

    bool take(DriverCall::Kind kind, std::uint64_t size_bytes);

    std::string config_;
    ClonePtr<Device> device_;
    std::vector<PoolBlock> blocks_;
    std::vector<BlockIndex> unused_;  // entries of blocks_
    BlockTable live_;
    std::map<std::uint32_t, Segment> segments_;
    std::uint32_t next_segment_ = 0;
    DeviceAddress next_address_ = kFirstSegmentAddress;
    PoolStatistics statistics_;
    NotCopied<std::vector<DriverCall>> driver_calls_;
};

}  // namespace fragtrace::analyzer
