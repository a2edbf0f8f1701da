// Open-addressing hash table from block ids to the pool's own block indices. The caller of the pool
// chooses the ids. The table's size follows the number of live blocks and not the ids, so that
// cloning a pool stays cheap for long traces. Not thread-safe.
#pragma once

#include "analyzer/pools/free_set.h"
#include "analyzer/pools/pool.h"

#include <bit>
#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

class BlockTable {
  public:
    BlockTable() : entries_(kLeastEntries) {}

    // An index into the table. Valid until the next change.
    using Place = std::uint32_t;

    // Returns the place of an id, or the empty place where it would be inserted.
    [[nodiscard]] Place place_of(BlockId id) const {
        Place at = home(id);
        while (entries_[at].block != kNoBlock && entries_[at].id != id) {
            at = (at + 1) & mask();
        }
        return at;
    }

    // Returns kNoBlock if the place is empty.
    [[nodiscard]] BlockIndex block_at(Place at) const { return entries_[at].block; }

    [[nodiscard]] BlockIndex find(BlockId id) const { return block_at(place_of(id)); }

    // Inserting an id again replaces the earlier block.
    void insert(BlockId id, BlockIndex block) {
        if ((count_ + 1) * kLeastRoom > entries_.size()) {
            grow();
        }
        const Place at = place_of(id);
        count_ += entries_[at].block == kNoBlock ? 1 : 0;
        entries_[at] = {id, block};
    }

    void erase(BlockId id) {
        if (const Place at = place_of(id); block_at(at) != kNoBlock) {
            erase_at(at);
        }
    }

    // Requires that the place contains a block.
    void erase_at(Place hole) {
        // Close the gap: an entry that was stored after its home because the hole was occupied
        // moves into the hole.
        for (Place at = (hole + 1) & mask(); entries_[at].block != kNoBlock;
             at = (at + 1) & mask()) {
            const Place wanted = home(entries_[at].id);
            if (((at - wanted) & mask()) >= ((at - hole) & mask())) {
                entries_[hole] = entries_[at];
                hole = at;
            }
        }
        entries_[hole] = {};
        --count_;
    }

    [[nodiscard]] std::size_t size() const { return count_; }

  private:
    static constexpr std::size_t kLeastEntries = 64;
    // At least this many entries per block, so that most blocks are at their home.
    static constexpr std::size_t kLeastRoom = 2;
    static constexpr unsigned kGroupBits = 3;

    struct Entry {
        BlockId id = 0;
        BlockIndex block = kNoBlock;
    };

    [[nodiscard]] std::uint32_t mask() const {
        return static_cast<std::uint32_t>(entries_.size() - 1);
    }

    // Consecutive ids stay in one group, which fits into one cache line of the processor: blocks
    // that are allocated one after the other are mostly freed in the same order. Groups are spread
    // by 2^32 / golden ratio. Otherwise two long runs of ids could collide and form one long run.
    [[nodiscard]] Place home(BlockId id) const {
        const std::uint32_t group = ((id >> kGroupBits) * 2654435769U) >> shift_;
        return group << kGroupBits | (id & ((1U << kGroupBits) - 1));
    }

    void grow() {
        std::vector<Entry> old(entries_.size() * 2);
        old.swap(entries_);
        shift_ = 32 + kGroupBits - static_cast<unsigned>(std::countr_zero(entries_.size()));
        count_ = 0;
        for (const Entry& entry : old) {
            if (entry.block != kNoBlock) {
                insert(entry.id, entry.block);
            }
        }
    }

    std::vector<Entry> entries_;
    unsigned shift_ = 32 + kGroupBits - 6;  // groups == 1 << (32 - shift_)
    std::size_t count_ = 0;
};

}  // namespace fragtrace::analyzer
