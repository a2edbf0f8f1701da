// From the ids that the driver of a pool chose to the pool's own block indices: an open-addressing
// hash table. Sized by the live blocks, not by the ids: a clone of the pool stays cheap however
// long the trace. Not thread-safe.
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

    // Valid until the next change.
    using Place = std::uint32_t;

    // Where an id is, or would be if it were there.
    [[nodiscard]] Place place_of(BlockId id) const {
        Place at = home(id);
        while (entries_[at].block != kNoBlock && entries_[at].id != id) {
            at = (at + 1) & mask();
        }
        return at;
    }

    // kNoBlock = none.
    [[nodiscard]] BlockIndex block_at(Place at) const { return entries_[at].block; }

    [[nodiscard]] BlockIndex find(BlockId id) const { return block_at(place_of(id)); }

    // A second insertion of an id replaces the first.
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

    // There must be a block.
    void erase_at(Place hole) {
        // Close the gap: whatever was pushed past the hole moves back into it.
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
    static constexpr std::size_t kLeastRoom = 2;  // entries for each block: most are at home
    static constexpr unsigned kGroupBits = 3;

    struct Entry {
        BlockId id = 0;
        BlockIndex block = kNoBlock;
    };

    [[nodiscard]] std::uint32_t mask() const {
        return static_cast<std::uint32_t>(entries_.size() - 1);
    }

    // Ids that follow each other stay together, as many as share a line of the processor's cache:
    // blocks that are allocated one after the other are mostly freed so. The groups are spread by
    // 2^32 / the golden ratio: otherwise ids of two long runs could meet, and form one long run.
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
