// A prefix tree of stacks. Nodes are in the ring; a hash table in private memory finds them by
// (parent, frame).
//
// Lock-free: a node is filled before its number is stored in the hash table. If two threads intern
// the same frame at once, one node may stay unused; both get the same number.
#pragma once

#include <fragtrace/format.h>

#include "recorder/ring.h"
#include "stacks/stack_hash.h"

namespace fragtrace::preload {

// Returns `found`, which usually equals `expected`. Then the processor can continue with
// `expected`, which it knew before the loads that produced `found`, and verify the guess meanwhile.
template <typename T>
T as_expected(T found, T expected) {
    if (found == expected) [[likely]] {
        asm volatile("" : "+r"(expected));  // the compiler must not assume that they are equal
        return expected;
    }
    return found;
}

class StackTable {
  public:
    // Maps the hash tables. Returns false without memory.
    bool create(Ring* ring);
    void abandon();

    // Returns the node of `frame` called from `parent`, 0 if the tree is full. `line_of` returns
    // the line; it is called only for a new frame.
    template <typename LineOf>
    uint32_t intern(uint32_t parent, uint64_t frame, LineOf line_of) {
        const uint64_t hash = mix(parent, frame);
        uint64_t* slot = nullptr;
        const uint32_t known = find(parent, frame, hash, &slot);
        if (known != 0 || slot == nullptr) {
            return known;
        }
        return insert(parent, frame, hash, slot, line_of());
    }

    // Returns the node of a stack that was interned before, by a hash of all its frames; 0 if
    // unknown. `frame_at(i)` returns a frame, from i = 0 (innermost) to the frame above `base`.
    // Each frame's node is passed to `keep(i, node)`. know_stack() adds a stack under its hash.
    template <typename FrameAt, typename Keep>
    uint32_t find_stack(
        uint32_t base, uint32_t count, uint64_t hash, FrameAt frame_at, Keep keep) const {
        const uint64_t entry = load_acquire(&known_[hash & (kKnownStacks - 1)]);
        if ((entry ^ hash) >> 32 != 0) {
            return 0;
        }
        const auto innermost = static_cast<uint32_t>(entry);
        uint32_t node = innermost;
        for (uint32_t i = 0; i < count; ++i) {
            const StackNode& at = ring_->nodes[node];
            if (node == 0 || at.frame != frame_at(i)) {
                return 0;
            }
            keep(i, node);
            // Nodes of one stack are usually created one after the other; see as_expected().
            node = as_expected(at.parent, node - 1);
        }
        return node == base ? innermost : 0;
    }

    void know_stack(uint64_t hash, uint32_t node) {
        store_release(&known_[hash & (kKnownStacks - 1)], (hash >> 32 << 32) | node);
    }

  private:
    static constexpr uint32_t kKnownStacks = 65536;
    static constexpr uint32_t kMaxProbes = 256;

    // A hash table of nodes. Most programs only need the first table, which is sized for them.
    struct Table {
        uint64_t* entries;  // high half: tag from the hash; low half: node, 0 = free
        uint32_t last_slot;
    };

    // The number of nodes that the first table is made for.
    static constexpr uint32_t kFewNodes = 65536;

    [[nodiscard]] Table first_table() const { return {few_, kFewNodes * 2 - 1}; }

    [[nodiscard]] Table second_table() const {
        return {load_acquire(&many_), kNodeCapacity * 2 - 1};
    }

    static uint64_t mix(uint32_t parent, uint64_t frame) {
        return finish_hash((frame ^ (uint64_t{parent} << 40) ^ parent) * 0x9e3779b97f4a7c15u);
    }

    // Returns the node. Otherwise 0, and in `slot` the place where it belongs, nullptr if there is
    // none.
    uint32_t find(uint32_t parent, uint64_t frame, uint64_t hash, uint64_t** slot) const {
        const uint32_t known = find_in(first_table(), parent, frame, hash, slot);
        const Table second = second_table();
        return known != 0 || second.entries == nullptr ? known
                                                       : find_in(second, parent, frame, hash, slot);
    }

    uint32_t find_in(
        Table table, uint32_t parent, uint64_t frame, uint64_t hash, uint64_t** slot) const {
        const uint64_t tag = hash >> 32 << 32;
        for (uint32_t probe = 0; probe < kMaxProbes; ++probe) {
            uint64_t* at = &table.entries[static_cast<uint32_t>(hash + probe) & table.last_slot];
            const uint64_t entry = load_acquire(at);
            if (entry == 0) {
                *slot = at;
                return 0;
            }
            if ((entry ^ tag) >> 32 == 0) {
                const StackNode& node = ring_->nodes[static_cast<uint32_t>(entry)];
                if (node.frame == frame && node.parent == parent) {
                    return static_cast<uint32_t>(entry);
                }
            }
        }
        *slot = nullptr;
        return 0;
    }

    uint32_t insert(uint32_t parent, uint64_t frame, uint64_t hash, uint64_t* slot, uint32_t line);
    bool map_second_table();

    Ring* ring_;
    uint64_t* known_;  // known whole stacks; high half: tag from the hash; low half: innermost node
    uint64_t* few_;    // entries of the first table
    uint64_t* many_;   // entries of the second table; nullptr before the first is full
};

}  // namespace fragtrace::preload
