// Ordered sets of free blocks, laid out for speed: a list per class of sizes.
//
// Ordered by (size, tie-break): the first block that is not smaller than a key is the best fit. A
// replay spends most of its time here. Classes are so narrow that a list rarely has more than a
// few blocks; one that grows long becomes a search tree, so that no program makes it slow. Blocks
// refer to each other by index: copying the sets copies arrays. Not thread-safe.
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

    struct Set {
        std::array<BlockIndex, kClasses> first;       // of each class; kNoBlock, kInTree
        std::array<std::uint64_t, kWords> used{};     // a bit per class that has blocks
        std::uint32_t used_words = 0;                 // a bit per word that is not 0
        std::array<std::uint8_t, kClasses> length{};  // of each class's list
        std::size_t size = 0;
        std::map<std::uint32_t, Tree> trees;  // by class
    };

    static std::uint32_t class_of(const FreeKey& key) {
        const std::uint64_t units = key.size_bytes() >> kUnitLog2;
        if (units < 2 * kParts) {
            return static_cast<std::uint32_t>(units);
        }
        const auto shift = static_cast<std::uint32_t>(std::bit_width(units)) - 1 - kPartsLog2;
        return (shift << kPartsLog2) + static_cast<std::uint32_t>(units >> shift);
    }

    static std::uint32_t used_from(const Set& set, std::uint32_t size_class);
    static void mark_unused(Set& set, std::uint32_t size_class);
    [[nodiscard]] BlockIndex first_from(const Set& set, std::uint32_t size_class) const;
    [[nodiscard]] BlockIndex last_before(const Set& set, std::uint32_t end) const;
    void make_tree(Set& set, std::uint32_t size_class);

    std::vector<Set> sets_;
    std::vector<Node> nodes_;  // by block
};

}  // namespace fragtrace::analyzer
