// Simulation of PyTorch's caching allocator for one device: the same requests in the same order get
// the same blocks, segments and statistics as in PyTorch 2.15 (other releases: PytorchRules).
//
// Blocks and segments are stored in arrays and refer to each other by index, so clone() copies
// arrays. A segment is a chain of blocks without gaps. An expandable segment is one chain over its
// whole address range, including blocks that are not mapped. Not thread-safe.
#pragma once

#include "analyzer/pools/address_space.h"
#include "analyzer/pools/block_table.h"
#include "analyzer/pools/free_set.h"
#include "analyzer/pools/pool.h"
#include "analyzer/pools/pytorch/pytorch_config.h"
#include "analyzer/pools/pytorch/pytorch_rules.h"
#include "analyzer/pools/pytorch/pytorch_statistics.h"
#include "analyzer/support/copied_members.h"

#include <array>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace fragtrace::analyzer {

// One entry of PyTorch's own memory history.
struct PytorchTraceEntry {
    enum class Action : std::uint8_t {
        kAlloc,
        kFreeRequested,
        kFreeCompleted,
        kSegmentAlloc,
        kSegmentFree,
        kSegmentMap,
        kSegmentUnmap,
        kOutOfMemory,
    };
    Action action = Action::kAlloc;
    std::uint64_t address = 0;     // 0 for kOutOfMemory
    std::uint64_t size_bytes = 0;  // blocks: as requested; failed requests: rounded
};

class PytorchPool final : public Pool {
  public:
    // `stream_handles[i]` is the raw handle of StreamId i. Free blocks are sorted by it.
    PytorchPool(PytorchConfig config,
                std::unique_ptr<Device> device,
                std::vector<std::uint64_t> stream_handles,
                const PytorchRules& rules = {});

    // Sets the order in which the driver gives addresses to segments. Call it before the first
    // request. It affects only releases before 2.13 (PytorchRules::TieBreak).
    void set_address_order(AddressOrder order, std::uint64_t seed = 0) {
        addresses_ = AddressSpace(order, seed);
    }

    [[nodiscard]] std::string_view name() const override { return "pytorch"; }

    [[nodiscard]] std::string config() const override { return to_string(config_); }

    AllocateResult allocate(const Request& request) override;
    bool release(BlockId id, const std::vector<PendingOn>& pending) override;
    void complete(PendingId id) override;
    void empty_cache() override;
    void set_memory_fraction(double fraction) override;

    [[nodiscard]] const PoolStatistics& statistics() const override { return statistics_; }

    [[nodiscard]] std::optional<Placement> find(BlockId id) const override;
    [[nodiscard]] HeapSnapshot snapshot() const override;
    [[nodiscard]] std::uint64_t largest_free_bytes(const Request& request) const override;
    [[nodiscard]] std::uint64_t releasable_bytes() const override;
    [[nodiscard]] std::uint64_t rounded_bytes(std::uint64_t requested_bytes) const override;
    [[nodiscard]] std::uint64_t page_bytes(std::uint64_t rounded_bytes) const override;
    [[nodiscard]] std::uint64_t driver_bytes(std::uint64_t rounded_bytes) const override;
    std::vector<DriverCall> take_driver_calls() override;

    [[nodiscard]] Device& device() override { return *device_; }

    [[nodiscard]] std::unique_ptr<Pool> clone() const override {
        return std::make_unique<PytorchPool>(*this);
    }

    bool relax(Relaxation relaxation) override;

    bool adopt(const HeapSnapshot& heap) override;
    bool allocate_at(const Request& request, const Placement& place) override;
    void set_private_pool(std::uint32_t private_pool, const PrivatePoolOptions& options) override;
    void empty_private_pool(std::uint32_t private_pool) override;
    bool change_settings(std::string_view config) override;
    // Starts or ends a stream capture. During a capture no event is checked, cross-stream frees
    // wait, and no memory is released.
    void set_capturing(bool capturing);

    // Counts everything that torch.cuda.memory_stats() counts. Call it before the first request.
    // Without it, pytorch_statistics() lacks blocks. Replays do not need these counts, and each
    // block would change twenty of them.
    void count_blocks() { counts_blocks_ = true; }

    [[nodiscard]] const PytorchStatistics& pytorch_statistics() const { return detail_; }

    [[nodiscard]] PytorchStatistic reserved_by_private_pool(std::uint32_t private_pool) const;

    [[nodiscard]] const PytorchConfig& settings() const { return config_; }

    // Appends entries to `history`. It must outlive the pool, or be removed by
    // write_history(nullptr). Clones write no history.
    void write_history(std::vector<PytorchTraceEntry>* history) { *history_ = history; }

  private:
    using SetIndex = FreeSets::SetIndex;
    using SlotIndex = SetsByStream::Slot;  // slot of a stream, numbered by first use
    using PoolIndex = std::uint32_t;       // 2 * pair + size class

    enum class State : std::uint8_t { kUnused, kLive, kPending, kFree, kUnmapped };

    struct Block {
        std::uint64_t offset = 0;  // from the start of the segment
        std::uint64_t size_bytes = 0;
        std::uint64_t requested_bytes = 0;
        std::uint64_t rounded_bytes = 0;  // the request's rounded size, at most the block size
        BlockIndex previous = kNoBlock;
        BlockIndex next = kNoBlock;
        std::uint32_t segment = 0;
        BlockId id = 0;
        PoolIndex pool = 0;
        std::uint32_t age_base = 0;     // the pool's search count when the block became free
        std::uint32_t event_count = 0;  // cross-stream events that the block waits for
        StreamId stream = 0;
        State state = State::kUnused;
        bool expandable = false;
    };

    // Entries are never reused, so the index is the registration number.
    struct Segment {
        std::uint64_t address = 0;
        std::uint64_t size_bytes = 0;  // expandable: size of the address range
        BlockIndex first = kNoBlock;
        std::uint64_t page_bytes = 0;  // expandable only
        bool live = false;
    };

    struct BlockPool {
        SetsByStream free;
        SetsByStream unmapped;
        std::uint64_t releasable_bytes = 0;
        std::uint32_t search_count = 0;
    };

    // The small and the large pool, either of the default pool (index 0) or of a private pool.
    struct PoolPair {
        std::uint32_t private_pool = 0;
        PrivatePoolOptions options;
        bool exists = false;
        bool merged = false;  // a relaxation merged it into the default pool
        PytorchStatistic reserved;
        // PyTorch's own count of segments (see PoolStatistics::pool_lost). An adopted state
        // contains the segments but not how many requests mapped them. The count is then unknown,
        // and pool_lost is never concluded from it.
        std::uint64_t segments = 0;
        bool segments_known = true;
    };

    // One request while the allocator processes it.
    struct Search {
        std::uint64_t requested_bytes;
        std::uint64_t rounded_bytes;
        PoolIndex pool;
        SlotIndex slot;
        StreamId stream;
        bool small;
        bool expandable;
        bool rejected;
        bool in_capture;  // no event is checked and no cache is released
    };

    struct Waiting {
        PendingId id;
        BlockIndex block;
    };

    struct PendingEvent {
        std::uint32_t waiting = 0;
        bool complete = false;
    };

    struct Parked {
        BlockId block;
        std::vector<PendingOn> pending;
    };

    // pytorch_pool.cpp: the steps of a request.
    Search make_search(const Request& request);
    BlockIndex grow(Search& search, Outcome& outcome);
    BlockIndex take_free(const Search& search, PoolIndex pool, bool expandable);
    [[nodiscard]] BlockIndex pick_expandable(BlockIndex found, bool expandable) const;
    BlockIndex take_from_fallback(Search& search);
    BlockIndex allocate_segment(Search& search, bool retry);

    // pytorch_hand_out.cpp
    [[nodiscard]] bool should_split(const Search& search, BlockIndex block) const;
    Placement hand_out(const Search& search, BlockIndex found, const Request& request);
    void count_split(const Block& block, BlockIndex rest, bool was_split);
    void count_allocated(const Block& block);
    [[nodiscard]] std::uint64_t rounded_part(const Block& block,
                                             std::uint64_t requested_bytes) const;

    // pytorch_adopt.cpp: adopting the state of another pool.
    void forget_all();
    BlockIndex append_block(std::uint32_t segment, const Block& block, BlockIndex last);
    bool adopt_range(const HeapSnapshot& heap,
                     const HeapSegment& range,
                     std::uint32_t segment,
                     std::uint64_t offset,
                     BlockIndex* last);

    // pytorch_place.cpp: blocks at given places.
    void know_free_places();
    [[nodiscard]] BlockIndex block_around(const Placement& place) const;
    BlockIndex split_off_front(BlockIndex index, std::uint64_t size_bytes);

    // pytorch_blocks.h: blocks, chains and free sets, inline because nearly every request uses
    // them.
    BlockIndex new_block();
    void drop_block(BlockIndex block);
    [[nodiscard]] FreeKey key_of(const Block& block) const;
    void insert_free(BlockIndex index);
    void erase_free(BlockIndex index);
    [[nodiscard]] std::uint64_t releasable_part(const Block& block) const;
    std::uint64_t merge(BlockIndex index, BlockIndex neighbour);
    void free_block(BlockIndex index);
    void count_live(BlockIndex index, const Request& request, std::uint64_t rounded_bytes);

    // pytorch_blocks.cpp: the rest about blocks, segments, streams and pools.
    [[nodiscard]] FreeKey unmapped_key_of(const Block& block) const;
    void insert_unmapped(BlockIndex index);
    [[nodiscard]] std::uint64_t whole_pages(const Block& block) const;
    void count_freed(const Block& block, std::uint64_t before_bytes, std::uint64_t after_bytes);
    BlockIndex new_segment(std::uint64_t size_bytes, const Search& search);
    void drop_segment(BlockIndex block);

    SlotIndex slot_of(StreamId stream) {
        if (one_stream_) {
            return 0;
        }
        const SlotIndex slot = stream < slot_of_stream_.size() ? slot_of_stream_[stream] : kNoSlot;
        return slot != kNoSlot ? slot : new_slot(stream);
    }

    SlotIndex new_slot(StreamId stream);

    [[nodiscard]] std::optional<SlotIndex> known_slot(StreamId stream) const {
        if (one_stream_) {
            return 0;
        }
        if (stream >= slot_of_stream_.size() || slot_of_stream_[stream] == kNoSlot) {
            return std::nullopt;
        }
        return slot_of_stream_[stream];
    }

    [[nodiscard]] std::optional<std::uint32_t> find_pair(std::uint32_t private_pool) const;

    std::uint32_t pair_of(std::uint32_t private_pool) {
        return private_pool == 0 ? 0 : private_pair(private_pool);
    }

    std::uint32_t private_pair(std::uint32_t private_pool);

    [[nodiscard]] static std::size_t size_class(PoolIndex pool) { return pool & 1; }

    [[nodiscard]] const PoolPair& pair(PoolIndex pool) const { return pairs_[pool / 2]; }

    [[nodiscard]] static bool is_split(const Block& block) {
        return block.previous != kNoBlock || block.next != kNoBlock;
    }

    // pytorch_expandable.cpp
    BlockIndex allocate_expandable(const Search& search);
    BlockIndex find_expandable(const Search& search);
    bool map(BlockIndex index, std::uint64_t size_bytes);
    bool unmap(BlockIndex index);
    [[nodiscard]] bool room_for(BlockIndex from, std::uint64_t size_bytes) const;
    [[nodiscard]] bool is_idle(BlockIndex block) const;

    // pytorch_release.cpp: pending frees, and memory that returns to the driver.
    void wait_for(BlockIndex block, const std::vector<PendingOn>& pending);
    void wait_for_parked();
    void process_events();
    void finish_event(const Waiting& waiting);
    void synchronize();
    void synchronize(std::uint32_t pair_index);
    void collect_garbage();
    bool release_available(const Search& search);
    void release_cached_after_events();
    void release_cached();
    void release_pair(std::uint32_t pair_index);
    void release_pool(PoolIndex pool);
    void release_segment(BlockIndex index);
    [[nodiscard]] std::vector<BlockIndex> free_blocks(PoolIndex pool);

    [[nodiscard]] bool collects_garbage() const {
        return limit_bytes_ != kNoLimit && config_.garbage_collection_threshold > 0;
    }

    // pytorch_relax.cpp
    void merge_pools();
    void rebuild_sets();

    void count_segment_gone(PoolIndex pool);

    // pytorch_snapshot.cpp
    void append_segment(const Segment& segment, HeapSnapshot& heap) const;

    // Accounting of memory that the driver allocated.
    void count_obtained(PoolIndex pool, std::uint64_t size_bytes);
    void count_returned(PoolIndex pool, std::uint64_t size_bytes);

    void log(DriverCall::Kind kind, bool refused, std::uint64_t size_bytes) {
        driver_calls_->push_back({kind, refused, size_bytes});
    }

    void note(PytorchTraceEntry::Action action, const Block& block, std::uint64_t size_bytes) {
        if (*history_ != nullptr) {
            (*history_)->push_back(
                {action, segments_[block.segment].address + block.offset, size_bytes});
        }
    }

    static constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};
    static constexpr SlotIndex kNoSlot = 0xffffffffu;

    PytorchConfig config_;
    PytorchRules rules_;
    ClonePtr<Device> device_;
    std::uint64_t limit_bytes_ = kNoLimit;
    std::uint64_t obtained_bytes_ = 0;

    std::vector<Block> blocks_;
    BlockIndex unused_ = kNoBlock;  // head of the list of unused blocks, linked by `next`
    std::vector<Segment> segments_;
    AddressSpace addresses_;
    std::vector<PoolPair> pairs_;
    std::unordered_map<std::uint32_t, std::uint32_t> pair_numbers_;  // by private pool
    std::vector<BlockPool> pools_;
    FreeSets sets_;  // free blocks by size, unmapped ones by address
    // Free blocks by segment and offset. Filled when the first block is placed at a given position.
    std::map<std::pair<std::uint32_t, std::uint64_t>, BlockIndex> free_places_;
    bool free_places_known_ = false;
    BlockTable table_;

    std::vector<std::uint64_t> stream_handles_;
    std::vector<SlotIndex> slot_of_stream_;
    std::vector<StreamId> stream_of_slot_;

    std::map<StreamId, std::deque<Waiting>> waiting_;
    std::unordered_map<PendingId, PendingEvent> events_;
    bool events_completed_ = false;  // since the last check
    bool capturing_ = false;
    std::vector<Parked> parked_;

    bool exact_segments_ = false;
    bool limits_lifted_ = false;
    bool one_stream_ = false;
    bool one_pool_ = false;
    bool counts_blocks_ = false;  // in detail_

    PoolStatistics statistics_;
    PytorchStatistics detail_;
    NotCopied<std::vector<DriverCall>> driver_calls_;
    NotCopied<std::vector<PytorchTraceEntry>*> history_;
};

}  // namespace fragtrace::analyzer
