// Ordered sets of free blocks, optimised for speed: one list per size class.
//
// Sets are ordered by (size, tie-break), so the first block that is not smaller than a key is the
// best fit. A replay spends most of its time here. Size classes are narrow, so most lists have only
// a few blocks. A list that grows long becomes a search tree, so no program makes the search slow.
// The first 64 sets have size classes from the start. With more sets (one per stream), a set of a
// few blocks is a single list and needs almost no memory. Blocks refer to each other by index, so
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

// 128 bits, compared as one number: size (48 bits, larger sizes count as equal), rank of the
// segment (32 bits), position (48 bits; a whole address if there is no rank). Sizes and positions
// are exact to the byte: PyTorch before 2.4 can be configured to allocate unrounded sizes.
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

    // Branch-free: a processor cannot predict the comparisons of a search.
    friend bool operator<(const FreeKey& a, const FreeKey& b) {
        __extension__ using Number = unsigned __int128;
        return (Number{a.high} << 64 | a.low) < (Number{b.high} << 64 | b.low);
    }

    bool operator==(const FreeKey&) const = default;
};

// All free sets of one pool. A block is in at most one of them.
class FreeSets {
  public:
    using SetIndex = std::uint32_t;

    SetIndex add_set();

    // Requires an empty set. Its index may be reused.
    void remove_set(SetIndex set) { unused_sets_.push_back(set); }

    // Removes all sets.
    void clear() { *this = FreeSets(); }

    [[nodiscard]] bool empty(SetIndex set) const { return sets_[set].size == 0; }

    [[nodiscard]] std::size_t size(SetIndex set) const { return sets_[set].size; }

    // Requires that the block is in no set.
    void insert(SetIndex set, const FreeKey& key, BlockIndex block);
    // Requires that the block is in a set.
    void erase(BlockIndex block);

    // These return kNoBlock if there is no such block.
    [[nodiscard]] BlockIndex lower_bound(SetIndex set, const FreeKey& key) const;
    [[nodiscard]] BlockIndex first(SetIndex set) const;
    [[nodiscard]] BlockIndex last(SetIndex set) const;
    [[nodiscard]] BlockIndex next(BlockIndex block) const;
    [[nodiscard]] BlockIndex previous(BlockIndex block) const;

    void append_to(SetIndex set, std::vector<BlockIndex>& blocks) const;

  private:
    // Size classes: one per multiple of 512 bytes up to 32 KiB. Above, each power of two is divided
    // into 32 classes.
    static constexpr std::uint32_t kPartsLog2 = 5;
    static constexpr std::uint32_t kParts = 1u << kPartsLog2;
    static constexpr std::uint32_t kUnitLog2 = 9;
    static constexpr std::uint32_t kWords = 18;
    static constexpr std::uint32_t kClasses = 64 * kWords;
    static constexpr std::uint32_t kLongList = 48;
    // Replaces links and first blocks when a tree stores the class.
    static constexpr BlockIndex kInTree = kNoBlock - 1;

    using Tree = std::map<FreeKey, BlockIndex>;

    struct Node {
        FreeKey key;
        BlockIndex previous = kNoBlock;  // neighbours in the block's list
        BlockIndex next = kNoBlock;
        SetIndex set = 0;
        std::uint32_t size_class = 0;
    };

    using TableIndex = std::uint32_t;
    static constexpr TableIndex kNoTable = 0xffffffffu;
    // Sets with an index below 64 always have a table, at the same index.
    static constexpr SetIndex kRoomySets = 64;
    static constexpr std::uint32_t kShortSet = 16;  // sets of up to this many blocks need no table
    // A set that shrinks to this many blocks loses its table.
    static constexpr std::uint32_t kShortAgain = 4;

    // A table that no set uses is empty.
    struct Table {
        // First block of each class, or kNoBlock or kInTree.
        std::array<BlockIndex, kClasses> first;
        std::array<std::uint64_t, kWords> used{};     // one bit per class that has blocks
        std::uint32_t used_words = 0;                 // one bit per word of `used` that is not 0
        std::array<std::uint8_t, kClasses> length{};  // number of blocks in each class's list
        std::map<std::uint32_t, Tree> trees;          // by class
    };

    struct Set {
        std::size_t size = 0;
        TableIndex table = kNoTable;
        BlockIndex first = kNoBlock;  // first block of the only list, if there is no table
    };

    static std::uint32_t class_of(const FreeKey& key) {
        const std::uint64_t units = key.size_bytes() >> kUnitLog2;
        if (units < 2 * kParts) {
            return static_cast<std::uint32_t>(units);
        }
        const auto shift = static_cast<std::uint32_t>(std::bit_width(units)) - 1 - kPartsLog2;
        return (shift << kPartsLog2) + static_cast<std::uint32_t>(units >> shift);
    }

    // Returns nullptr if the set is a single list.
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
    std::vector<Node> nodes_;  // indexed by block
};

inline constexpr FreeSets::SetIndex kNoSet = 0xffffffffu;

// The free sets of one pool, one per stream slot that needs one.
class SetsByStream {
  public:
    using Slot = std::uint32_t;

    // Returns kNoSet if the slot has no set yet.
    [[nodiscard]] FreeSets::SetIndex find(Slot slot) const {
        return slot < few_.size() ? few_[slot] : slot < kFew ? kNoSet : find_among_many(slot);
    }

    // Returns the slot's set. Creates it if the slot has none.
    FreeSets::SetIndex obtain(Slot slot, FreeSets& sets) {
        const FreeSets::SetIndex set = find(slot);
        return set != kNoSet ? set : add(slot, sets);
    }

    // Returns the slots whose sets have blocks, in ascending order. Removes empty sets.
    std::vector<Slot> in_use(FreeSets& sets);

  private:
    // Slots below this use an array, because programs have few streams.
    static constexpr Slot kFew = 64;

    [[nodiscard]] FreeSets::SetIndex find_among_many(Slot slot) const;
    FreeSets::SetIndex add(Slot slot, FreeSets& sets);

    std::vector<FreeSets::SetIndex> few_;      // indexed by slot
    std::map<Slot, FreeSets::SetIndex> many_;  // slots from kFew on
};

}  // namespace fragtrace::analyzer
