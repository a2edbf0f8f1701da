// Ordered sets of free blocks, laid out for speed: a list per class of sizes.
//
// Ordered by (size, tie-break): the first block that is not smaller than a key is the best fit. A
// replay spends most of its time here. Classes are so narrow that a list rarely has more than a
// few blocks; one that grows long becomes a search tree, so that no program makes it slow. Only the
// first sets have classes from the start; where there are many (one per stream), one of a few
// blocks is a single list and takes no memory to speak of. Blocks refer to each other by index:
// copying the sets copies arrays. Not thread-safe.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
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

    [[nodiscard]] std::uint64_t size_bytes() const { return high >> 16; }

    // Not branching: the outcome of a comparison in a search is a coin toss.
    friend bool operator<(const FreeKey& a, const FreeKey& b) {
        __extension__ using Number = unsigned __int128;
        return (Number{a.high} << 64 | a.low) < (Number{b.high} << 64 | b.low);
    }

    bool operator==(const FreeKey&) const = default;
};

// All free sets of one pool. A block is in one of them at most.
class FreeSets {
  public:
    using SetIndex = std::uint32_t;

    SetIndex add_set();

    // The set must be empty; its index may be given out again.
    void remove_set(SetIndex set) { unused_sets_.push_back(set); }

    // No sets are left.
    void clear() { *this = FreeSets(); }

    [[nodiscard]] bool empty(SetIndex set) const { return sets_[set].size == 0; }

    [[nodiscard]] std::size_t size(SetIndex set) const { return sets_[set].size; }

    // The block must be in no set.
    void insert(SetIndex set, const FreeKey& key, BlockIndex block);
    // The block must be in a set.
    void erase(BlockIndex block);

    // kNoBlock = there is none.
    [[nodiscard]] BlockIndex lower_bound(SetIndex set, const FreeKey& key) const;
    [[nodiscard]] BlockIndex first(SetIndex set) const;
    [[nodiscard]] BlockIndex last(SetIndex set) const;
    [[nodiscard]] BlockIndex next(BlockIndex block) const;
    [[nodiscard]] BlockIndex previous(BlockIndex block) const;

    void append_to(SetIndex set, std::vector<BlockIndex>& blocks) const;

  private:
    // Classes: each multiple of 512 bytes up to 32 KiB, from there 32 for each power of two.
    static constexpr std::uint32_t kPartsLog2 = 5;
    static constexpr std::uint32_t kParts = 1u << kPartsLog2;
    static constexpr std::uint32_t kUnitLog2 = 9;
    static constexpr std::uint32_t kWords = 18;
    static constexpr std::uint32_t kClasses = 64 * kWords;
    static constexpr std::uint32_t kLongList = 48;
    static constexpr BlockIndex kInTree = kNoBlock - 1;  // in place of links and first blocks

    using Tree = std::map<FreeKey, BlockIndex>;

    struct Node {
        FreeKey key;
        BlockIndex previous = kNoBlock;  // of its list
        BlockIndex next = kNoBlock;
        SetIndex set = 0;
        std::uint32_t size_class = 0;
    };

    using TableIndex = std::uint32_t;
    static constexpr TableIndex kNoTable = 0xffffffffu;
    // The first ones always have the table of the same number.
    static constexpr SetIndex kRoomySets = 64;
    static constexpr std::uint32_t kShortSet = 16;   // blocks that need no table
    static constexpr std::uint32_t kShortAgain = 4;  // blocks whose table goes

    // Nothing is in one that no set has.
    struct Table {
        std::array<BlockIndex, kClasses> first;       // of each class; kNoBlock, kInTree
        std::array<std::uint64_t, kWords> used{};     // a bit per class that has blocks
        std::uint32_t used_words = 0;                 // a bit per word that is not 0
        std::array<std::uint8_t, kClasses> length{};  // of each class's list
        std::map<std::uint32_t, Tree> trees;          // by class
    };

    struct Set {
        std::size_t size = 0;
        TableIndex table = kNoTable;
        BlockIndex first = kNoBlock;  // of the one list, where there is no table
    };

    static std::uint32_t class_of(const FreeKey& key) {
        const std::uint64_t units = key.size_bytes() >> kUnitLog2;
        if (units < 2 * kParts) {
            return static_cast<std::uint32_t>(units);
        }
        const auto shift = static_cast<std::uint32_t>(std::bit_width(units)) - 1 - kPartsLog2;
        return (shift << kPartsLog2) + static_cast<std::uint32_t>(units >> shift);
    }

    // nullptr: the set is a single list.
    [[nodiscard]] const Table* table_of(SetIndex set) const {
        if (set < kRoomySets) {
            return &tables_[set];
        }
        return sets_[set].table == kNoTable ? nullptr : &tables_[sets_[set].table];
    }

    static std::uint32_t used_from(const Table& table, std::uint32_t size_class);
    static std::uint32_t used_before(const Table& table, std::uint32_t end);
    static void mark_unused(Table& table, std::uint32_t size_class);
    [[nodiscard]] static BlockIndex first_from(const Table& table, std::uint32_t size_class);
    [[nodiscard]] BlockIndex last_before(const Table& table, std::uint32_t end) const;
    [[nodiscard]] BlockIndex last_of(BlockIndex first) const;
    [[nodiscard]] BlockIndex not_below(BlockIndex first, const FreeKey& key) const;
    void link(BlockIndex* first, const FreeKey& key, BlockIndex block);
    void unlink(BlockIndex* first, const Node& node);
    void insert(Table& table, const FreeKey& key, BlockIndex block);
    void insert_small(SetIndex index, const FreeKey& key, BlockIndex block);
    void erase(Table& table, const Node& node);
    void erase_small(const Node& node);
    void make_table(Set& set);
    void drop_table(Set& set);
    void make_tree(Table& table, std::uint32_t size_class);

    std::vector<Set> sets_;
    std::vector<SetIndex> unused_sets_;
    std::vector<Table> tables_;
    std::vector<TableIndex> unused_tables_;
    std::vector<Node> nodes_;  // by block
};

inline constexpr FreeSets::SetIndex kNoSet = 0xffffffffu;

// The sets of one pool, one for each stream slot that needs one.
class SetsByStream {
  public:
    using Slot = std::uint32_t;

    // kNoSet: it has none so far.
    [[nodiscard]] FreeSets::SetIndex find(Slot slot) const {
        return slot < few_.size() ? few_[slot] : slot < kFew ? kNoSet : find_among_many(slot);
    }

    // A new one if it has none.
    FreeSets::SetIndex obtain(Slot slot, FreeSets& sets) {
        const FreeSets::SetIndex set = find(slot);
        return set != kNoSet ? set : add(slot, sets);
    }

    // The slots whose sets have blocks, ascending. Sets without are forgotten.
    std::vector<Slot> in_use(FreeSets& sets);

  private:
    static constexpr Slot kFew = 64;  // an array up to here: programs have few streams

    [[nodiscard]] FreeSets::SetIndex find_among_many(Slot slot) const;
    FreeSets::SetIndex add(Slot slot, FreeSets& sets);

    std::vector<FreeSets::SetIndex> few_;      // by slot
    std::map<Slot, FreeSets::SetIndex> many_;  // of the others
};

}  // namespace fragtrace::analyzer
