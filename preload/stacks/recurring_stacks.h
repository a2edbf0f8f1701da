// Stacks that a thread comes back to, as training does at every step: known by the very words that
// lead a walk through them, compared where they were found, without a walk.
//
// A walk reads return addresses, and of the saved frame pointers it depends on those that reach a
// frame found by rbp. Where it begins at the same place with the same address, and all of these
// words are where and what they were, each step finds the next as it did then: the same stack.
#pragma once

#include <stdint.h>

namespace fragtrace::preload {

// What a walk goes by: of the frame that it is at.
struct Registers {
    uint64_t address;
    uint64_t stack_pointer;
    uint64_t frame_pointer;
};

// Of one thread, which alone reads and writes it. Zeroes are one that knows no stack.
class RecurringStacks {
  public:
    // Counted in words from the innermost frame's stack pointer.
    using Place = uint16_t;
    static constexpr uint64_t kFurthest_words = UINT16_MAX;
    static constexpr uint32_t kMostWords = 320;  // of a stack

    // The words of one stack on their way in.
    struct Draft {
        uint64_t* values;  // room for kMostWords
        Place* places;
    };

    // The node that was added with this stack, 0 if it was not. `from` is a live frame of the
    // calling thread's stack. No word is read before those further in have shown it to be there.
    uint32_t find(const Registers& from) {
        for (uint32_t head = heads_[hash_of(from)]; head != 0; head = entry_of(head).next_head) {
            const Entry& first = entry_of(head);
            if (first.from.stack_pointer != from.stack_pointer ||
                first.from.address != from.address ||
                (first.frame_pointer_counts && first.from.frame_pointer != from.frame_pointer)) {
                continue;
            }
            const Entry* entry = &first;
            uint32_t there = compare(*entry, 0);
            while (there != entry->count) {
                // On to the next that does not have to differ as this one did: at the same word,
                // or before it at one that this one had right.
                const uint32_t shared = entry->shared;
                const bool differs = entry->next_differs_by_value;
                if (entry->next == 0) {
                    break;
                }
                entry = &entry_of(entry->next);
                if (shared == there || (shared < there && !differs)) {
                    there = compare(*entry, shared);
                } else if (shared < there) {
                    there = shared;
                }
            }
            if (there == entry->count) {
                ++found_;
                return entry->node;
            }
        }
        return 0;
    }

    // False where this one would push out others that are needed more: too many different stacks.
    bool wants_another();

    // Where to write the words; valid until the next call of a member function.
    Draft draft();

    // `count` words of the draft, from the innermost outwards, lead through the stack of `node`.
    void add(const Registers& from, bool frame_pointer_counts, uint32_t count, uint32_t node);

    void forget();

    uint32_t owner;  // thread id, 0 = free

  private:
    static constexpr uint32_t kStacks = 512;
    static constexpr uint32_t kHeads = 1024;
    static constexpr uint32_t kMostAlike = 64;  // that begin alike
    static constexpr uint32_t kWords = 32768;   // of all stacks
    static constexpr uint32_t kRareTurn = 32;

    struct alignas(64) Entry {
        Registers from;
        uint32_t node;
        uint32_t begin;  // of its words
        uint16_t count;
        // Numbers are from 1, 0 = none. Heads of one hash; then those that begin as the head does.
        uint16_t next_head;
        uint16_t next;
        uint16_t alike;              // from this one on
        uint16_t shared;             // words that `next` has likewise, before one that it has not
        bool next_differs_by_value;  // there; else it has another place
        bool frame_pointer_counts;
    };

    static uint32_t hash_of(const Registers& from) {
        return static_cast<uint32_t>(
            ((from.address + (from.stack_pointer << 20)) * 0x9e3779b97f4a7c15u) >> 54);
    }

    static_assert(kHeads == 1u << (64 - 54));

    [[nodiscard]] const Entry& entry_of(uint32_t number) const { return entries_[number - 1]; }

    // The first word from the `at`-th on that is not there, or their count.
    [[nodiscard]] uint32_t compare(const Entry& entry, uint32_t at) const {
        const auto* stack = reinterpret_cast<const uint64_t*>(entry.from.stack_pointer);
        const uint64_t* values = &values_[entry.begin];
        const Place* places = &places_[entry.begin];
        const uint32_t count = entry.count;
        for (; at + 4 <= count && stack[places[at]] == values[at] &&
               stack[places[at + 1]] == values[at + 1] && stack[places[at + 2]] == values[at + 2] &&
               stack[places[at + 3]] == values[at + 3];
             at += 4) {
        }
        while (at < count && stack[places[at]] == values[at]) {
            ++at;
        }
        return at;
    }

    uint32_t words_;  // used
    uint32_t added_;
    uint32_t found_;
    uint32_t turn_;
    bool rare_;  // most were not found again before there was no room: one in kRareTurn is added
    uint16_t heads_[kHeads];
    Entry entries_[kStacks];
    uint64_t values_[kWords];
    Place places_[kWords];
};

}  // namespace fragtrace::preload
