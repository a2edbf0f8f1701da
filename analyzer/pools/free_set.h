// An ordered set of free blocks, laid out for speed: a sorted array cut into chunks.
//
// Ordered by (size, tie-break): the first block that is not smaller than a key is the best fit.
// A replay spends most of its time here; a chunk is searched and shifted within a few cache
// lines, and copying the set copies two arrays. Not thread-safe. Positions are invalid after any
// change.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

using BlockIndex = std::uint32_t;
inline constexpr BlockIndex kNoBlock = 0xffffffffu;

// 128 bits, compared as one number: size (48 bits, larger ones count as equal), rank of the segment
// (32), position (48; without a rank a whole address). To the byte: PyTorch before 2.4 can be set
// to hand out sizes that are multiples of nothing.
struct FreeKey {
    std::uint64_t high = 0;
    std::uint64_t low = 0;

    static FreeKey make(std::uint64_t size_bytes,
                        std::uint32_t rank,
                        std::uint64_t position_bytes) {
        constexpr std::uint64_t kMost = (std::uint64_t{1} << 48) - 1;  // larger than any block
        const std::uint64_t size = size_bytes < kMost ? size_bytes : kMost;
        return {size << 16 | rank >> 16, static_cast<std::uint64_t>(rank) << 48 | position_bytes};
    }

    // Not branching: the outcome of a comparison in a search is a coin toss.
    friend bool operator<(const FreeKey& a, const FreeKey& b) {
        __extension__ using Number = unsigned __int128;
        return (Number{a.high} << 64 | a.low) < (Number{b.high} << 64 | b.low);
    }

    bool operator==(const FreeKey&) const = default;
};

class FreeSet {
  public:
    struct Position {
        std::uint32_t chunk = 0;  // the number of chunks = the end
        std::uint32_t slot = 0;
    };

    [[nodiscard]] bool empty() const { return order_.empty(); }

    [[nodiscard]] std::size_t size() const { return size_; }

    void insert(const FreeKey& key, BlockIndex block);
    // The block must be in the set. It is found by its index, not searched for by its key.
    void erase(BlockIndex block);

    [[nodiscard]] static Position begin() { return {}; }

    [[nodiscard]] Position end() const { return {static_cast<std::uint32_t>(order_.size()), 0}; }

    [[nodiscard]] Position lower_bound(const FreeKey& key) const;

    [[nodiscard]] bool at_end(Position position) const { return position.chunk >= order_.size(); }

    [[nodiscard]] static bool at_begin(Position position) {
        return position.chunk == 0 && position.slot == 0;
    }

    [[nodiscard]] Position next(Position position) const;
    // Not for the first position; of the end it is the last.
    [[nodiscard]] Position previous(Position position) const;

    [[nodiscard]] BlockIndex block(Position position) const {
        return chunks_[order_[position.chunk]].blocks[position.slot];
    }

    void append_to(std::vector<BlockIndex>& blocks) const;
    void clear();

  private:
    static constexpr std::uint32_t kChunkSlots = 32;

    struct Chunk {
        std::uint32_t count = 0;
        std::array<BlockIndex, kChunkSlots> blocks;  // kNoBlock from `count` on
        std::array<FreeKey, kChunkSlots> keys;
    };

    [[nodiscard]] std::uint32_t find_chunk(const FreeKey& key) const;
    static std::uint32_t find_slot(const Chunk& chunk, const FreeKey& key);
    std::uint32_t new_chunk();
    void remove_chunk(std::uint32_t at);
    void split_chunk(std::uint32_t at);
    void join_with_next(std::uint32_t at);
    void note_chunk(std::uint32_t chunk, std::uint32_t begin);

    std::vector<Chunk> chunks_;
    std::vector<std::uint32_t> spare_;  // chunks not in use
    std::vector<std::uint32_t> order_;  // chunks in use, ascending
    // For each, in the same order: no key of it is greater, all of the next are. The greatest that
    // it has or had; a key beyond the last one raises that.
    std::vector<FreeKey> last_;
    std::vector<std::uint32_t> chunk_of_;  // per block that is in the set
    std::size_t size_ = 0;
};

}  // namespace fragtrace::analyzer
