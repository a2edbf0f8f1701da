// RAPIDS RMM's arena_memory_resource: one fixed piece of memory, cut into superblocks.
//
// Requests of at most 1 MiB are served by an arena per stream, which takes superblocks of 1 MiB
// from the global arena and keeps them; larger ones by the global arena. First fit by address.
// When there is no room, every arena hands its superblocks back and the request is tried once more.
// Threads have arenas of their own only for per-thread default streams, which a trace does not
// tell apart: one arena per stream here. Not thread-safe.
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
    // A range of the one segment; its free blocks are joined with each other only.
    struct Superblock {
        std::uint64_t end = 0;
        std::uint32_t arena = 0;
        std::uint32_t listed = 0;                  // where in Arena
        std::map<std::uint64_t, BlockIndex> free;  // by offset
        std::multiset<std::uint64_t> free_sizes;

        [[nodiscard]] std::uint64_t largest() const {
            return free_sizes.empty() ? 0 : *free_sizes.rbegin();
        }
    };

    using Superblocks = std::map<std::uint64_t, Superblock>;  // by offset
    // The offsets of an arena's superblocks, by the bit width of their largest free block.
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
    // file() or list_anew() must follow.
    void unfile(Superblocks::value_type* superblock, BlockIndex index);
    [[nodiscard]] bool is_empty(const Superblocks::value_type& superblock) const;
    // Cuts an empty one in two: the low part of `bytes` keeps its place in the map.
    void split_superblock(Superblocks::iterator superblock, std::uint64_t bytes);
    void move_to(Superblocks::iterator superblock, std::uint32_t arena);
    // Of the global arena, if it is empty: joined with its empty neighbours there.
    void coalesce(Superblocks::iterator superblock);
    void defragment();

    Amount size_ = {.percent = 50};
    bool begun_ = false;
    Superblocks superblocks_;
    std::map<std::uint32_t, Arena> arenas_;  // 0 is the global one
};

}  // namespace fragtrace::analyzer
