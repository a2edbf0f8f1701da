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

    [[nodiscard]] BlockIndex find(BlockId id) const {
        for (std::uint32_t at = home(id);; at = (at + 1) & mask()) {
            if (entries_[at].block == kNoBlock || entries_[at].id == id) {
                return entries_[at].block;
            }
        }
    }

    // A second insertion of an id replaces the first.
    void insert(BlockId id, BlockIndex block) {
        if ((count_ + 1) * 2 > entries_.size()) {
            grow();
        }
        for (std::uint32_t at = home(id);; at = (at + 1) & mask()) {
            if (entries_[at].block == kNoBlock) {
                ++count_;
            } else if (entries_[at].id != id) {
                continue;
            }
            entries_[at] = {id, block};
            return;
        }
    }

    void erase(BlockId id) {
        std::uint32_t hole = home(id);
        while (entries_[hole].id != id || entries_[hole].block == kNoBlock) {
            if (entries_[hole].block == kNoBlock) {
                return;
            }
            hole = (hole + 1) & mask();
        }
        // Close the gap: whatever was pushed past the hole moves back into it.
        for (std::uint32_t at = (hole + 1) & mask(); entries_[at].block != kNoBlock;
             at = (at + 1) & mask()) {
            const std::uint32_t wanted = home(entries_[at].id);
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

    struct Entry {
        BlockId id = 0;
        BlockIndex block = kNoBlock;
    };

    [[nodiscard]] std::uint32_t mask() const {
        return static_cast<std::uint32_t>(entries_.size() - 1);
    }

    [[nodiscard]] std::uint32_t home(BlockId id) const {
        return (id * 2654435769U) >> shift_;  // 2^32 / the golden ratio
    }

    void grow() {
        std::vector<Entry> old(entries_.size() * 2);
        old.swap(entries_);
        shift_ = 32 - static_cast<unsigned>(std::countr_zero(entries_.size()));
        count_ = 0;
        for (const Entry& entry : old) {
            if (entry.block != kNoBlock) {
                insert(entry.id, entry.block);
            }
        }
    }

    std::vector<Entry> entries_;
    unsigned shift_ = 32 - 6;  // entries_.size() == 1 << (32 - shift_)
    std::size_t count_ = 0;
};

}  // namespace fragtrace::analyzer
