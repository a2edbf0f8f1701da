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
    void insert(SetIndex set, FreeKey key, BlockIndex block);
    // Requires that the block is in a set.
    void erase(BlockIndex block);

    // These return kNoBlock if there is no such block.
    [[nodiscard]] BlockIndex lower_bound(SetIndex set, FreeKey key) const;
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

    static std::uint32_t class_of(FreeKey key) {
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
    [[nodiscard]] BlockIndex not_below(BlockIndex first, FreeKey key) const;
    void link(BlockIndex* first, FreeKey key, BlockIndex block);
    void unlink(BlockIndex* first, const Node& node);
    void insert(Table& table, FreeKey key, BlockIndex block);
    void insert_in_tree(Table& table, FreeKey key, BlockIndex block);
    void insert_small(SetIndex index, FreeKey key, BlockIndex block);
    void erase(Table& table, const Node& node);
    static void erase_from_tree(Table& table, const Node& node);
    void erase_small(const Node& node);
    void make_table(Set& set);
    void drop_table(Set& set);
    void make_tree(Table& table, std::uint32_t size_class);
    [[nodiscard]] static BlockIndex not_below_in_tree(const Table& table,
                                                      std::uint32_t size_class,
                                                      FreeKey key);
    [[nodiscard]] static BlockIndex first_in_tree(const Table& table, std::uint32_t size_class);

    std::vector<Set> sets_;
    std::vector<SetIndex> unused_sets_;
    std::vector<Table> tables_;
    std::vector<TableIndex> unused_tables_;
    std::vector<Node> nodes_;  // indexed by block
};

inline constexpr FreeSets::SetIndex kNoSet = 0xffffffffu;

// ---- the operations of nearly every request, inline ----

// First class from `size_class` on that has blocks; kClasses = none.
inline std::uint32_t FreeSets::used_from(const Table& table, std::uint32_t size_class) {
    std::uint32_t word = size_class / 64;
    if (word >= kWords) {
        return kClasses;
    }
    std::uint64_t used = table.used[word] & ~std::uint64_t{0} << size_class % 64;
    if (used == 0) {
        const std::uint32_t words = table.used_words & ~std::uint32_t{1} << word;
        if (words == 0) {
            return kClasses;
        }
        word = static_cast<std::uint32_t>(std::countr_zero(words));
        used = table.used[word];
    }
    return 64 * word + static_cast<std::uint32_t>(std::countr_zero(used));
}

inline void FreeSets::mark_unused(Table& table, std::uint32_t size_class) {
    std::uint64_t& used = table.used[size_class / 64];
    used &= ~(std::uint64_t{1} << size_class % 64);
    table.used_words &= ~(std::uint32_t{used == 0} << size_class / 64);
}

inline BlockIndex FreeSets::first_from(const Table& table, std::uint32_t size_class) {
    const std::uint32_t at = used_from(table, size_class);
    if (at == kClasses) {
        return kNoBlock;
    }
    const BlockIndex first = table.first[at];
    return first != kInTree ? first : first_in_tree(table, at);
}

inline BlockIndex FreeSets::not_below(BlockIndex first, FreeKey key) const {
    BlockIndex block = first;
    while (block != kNoBlock && nodes_[block].key < key) {
        block = nodes_[block].next;
    }
    return block;
}

inline BlockIndex FreeSets::lower_bound(SetIndex index, FreeKey key) const {
    const Table* table = table_of(index);
    if (table == nullptr) {
        return not_below(sets_[index].first, key);
    }
    const std::uint32_t size_class = class_of(key);
    const BlockIndex first = table->first[size_class];
    const BlockIndex block =
        first == kInTree ? not_below_in_tree(*table, size_class, key) : not_below(first, key);
    return block != kNoBlock ? block : first_from(*table, size_class + 1);
}

// Inserts a block at its place in a sorted list. `key` is a parameter because the node's own copy
// was stored just now, and reading that copy back would stall. All keys are passed by value for the
// same reason.
inline void FreeSets::link(BlockIndex* first, FreeKey key, BlockIndex block) {
    Node& node = nodes_[block];
    BlockIndex previous = kNoBlock;
    BlockIndex next = *first;
    while (next != kNoBlock && nodes_[next].key < key) {
        previous = next;
        next = nodes_[next].next;
    }
    node.previous = previous;
    node.next = next;
    (previous != kNoBlock ? nodes_[previous].next : *first) = block;
    if (next != kNoBlock) {
        nodes_[next].previous = block;
    }
}

inline void FreeSets::unlink(BlockIndex* first, const Node& node) {
    (node.previous != kNoBlock ? nodes_[node.previous].next : *first) = node.next;
    if (node.next != kNoBlock) {
        nodes_[node.next].previous = node.previous;
    }
}

inline void FreeSets::insert(Table& table, FreeKey key, BlockIndex block) {
    const std::uint32_t size_class = class_of(key);
    nodes_[block].size_class = size_class;
    BlockIndex& first = table.first[size_class];
    if (first == kInTree) {
        insert_in_tree(table, key, block);
        return;
    }
    link(&first, key, block);
    table.used[size_class / 64] |= std::uint64_t{1} << size_class % 64;
    table.used_words |= std::uint32_t{1} << size_class / 64;
    if (++table.length[size_class] > kLongList) {
        make_tree(table, size_class);
    }
}

inline void FreeSets::insert(SetIndex index, FreeKey key, BlockIndex block) {
    if (block >= nodes_.size()) {
        nodes_.resize(std::size_t{block} + block / 2 + 1);
    }
    Node& node = nodes_[block];
    node.key = key;
    node.set = index;
    ++sets_[index].size;
    if (index < kRoomySets) {
        insert(tables_[index], key, block);
    } else {
        insert_small(index, key, block);
    }
}

inline void FreeSets::erase(Table& table, const Node& node) {
    if (node.next == kInTree) {
        erase_from_tree(table, node);
        return;
    }
    --table.length[node.size_class];
    unlink(&table.first[node.size_class], node);
    if (node.next == kNoBlock && node.previous == kNoBlock) {
        mark_unused(table, node.size_class);
    }
}

inline void FreeSets::erase(BlockIndex block) {
    const Node& node = nodes_[block];
    --sets_[node.set].size;
    if (node.set < kRoomySets) {
        erase(tables_[node.set], node);
    } else {
        erase_small(node);
    }
}

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
