// RAPIDS RMM's arena_memory_resource: one fixed range of memory, divided into superblocks.
//
// The arena of a stream serves requests of up to 1 MiB. It gets superblocks of 1 MiB from the
// global arena and keeps them. The global arena serves larger requests. First fit by address. If
// there is no room, every arena returns its superblocks and the request is tried once more. In RMM,
// threads have their own arenas only for per-thread default streams. A trace cannot distinguish
// those, so this model has one arena per stream. Not thread-safe.
#pragma once

#include "analyzer/pools/others/segment_pool.h"
#include "analyzer/pools/pool_settings.h"
#include "analyzer/support/result.h"

#include <map>
#include <set>

namespace fragtrace::analyzer {

class RmmArenaPool final : public SegmentPool {
  public:
    static Result<std::unique_ptr<Pool>> make(std::string_view config,
                                              std::unique_ptr<Device> device);

    [[nodiscard]] std::string_view name() const override { return "rmm-arena"; }

    AllocateResult allocate(const Request& request) override;
    [[nodiscard]] std::uint64_t largest_free_bytes(const Request& request) const override;
    [[nodiscard]] std::uint64_t rounded_bytes(std::uint64_t requested_bytes) const override;

    [[nodiscard]] std::unique_ptr<Pool> clone() const override {
        return std::make_unique<RmmArenaPool>(*this);
    }

  private:
    // A range of the only segment. Its free blocks merge only with each other.
    struct Superblock {
        std::uint64_t end = 0;
        std::uint32_t arena = 0;
        std::uint32_t listed = 0;                  // its key in Arena
        std::map<std::uint64_t, BlockIndex> free;  // by offset
        std::multiset<std::uint64_t> free_sizes;

        [[nodiscard]] std::uint64_t largest() const {
            return free_sizes.empty() ? 0 : *free_sizes.rbegin();
        }
    };

    using Superblocks = std::map<std::uint64_t, Superblock>;  // by offset
    // Offsets of an arena's superblocks, by the bit width of their largest free block.
    using Arena = std::map<std::uint32_t, std::set<std::uint64_t>>;
    using SegmentPool::SegmentPool;

    void freed(BlockIndex index) override;
    void forget() override;
    bool begin(StreamId stream);
    BlockIndex serve(std::uint32_t arena, std::uint64_t size_bytes);
    Superblocks::iterator first_fit(std::uint32_t arena, std::uint64_t size_bytes);
    [[nodiscard]] BlockIndex first_block_in(const Superblock& superblock,
                                            std::uint64_t size_bytes) const;
    void enter_arena(Superblocks::value_type* superblock);
    void leave_arena(const Superblocks::value_type& superblock);
    void list_anew(Superblocks::value_type* superblock);
    void file(Superblocks::value_type* superblock, BlockIndex index);
    // The caller must call file() or list_anew() afterwards.
    void unfile(Superblocks::value_type* superblock, BlockIndex index);
    [[nodiscard]] bool is_empty(const Superblocks::value_type& superblock) const;
    // Splits an empty superblock. The low part of `bytes` keeps its place in the map.
    void split_superblock(Superblocks::iterator superblock, std::uint64_t bytes);
    void move_to(Superblocks::iterator superblock, std::uint32_t arena);
    // Merges an empty superblock of the global arena with its empty neighbours there.
    void coalesce(Superblocks::iterator superblock);
    void defragment();

    Amount size_ = {.percent = 50};
    bool begun_ = false;
    Superblocks superblocks_;
    std::map<std::uint32_t, Arena> arenas_;  // 0 is the global arena
};

}  // namespace fragtrace::analyzer
