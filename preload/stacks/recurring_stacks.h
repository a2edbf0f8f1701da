// Recognises stacks that a thread has had before, as in every step of a training, without a walk.
// It compares the words in stack memory that determine the walk with the words found last time.
//
// A walk depends on two kinds of words: the return addresses, and those saved frame pointers that
// reach a frame found by rbp. Assume that a walk starts at the same stack pointer and address, and
// that all these words have the same places and values as before. Then each step finds the same
// next frame, so the stack is the same.
#pragma once

#include <stdint.h>

namespace fragtrace::preload {

// The registers that a walk needs, for its current frame.
struct Registers {
    uint64_t address;
    uint64_t stack_pointer;
    uint64_t frame_pointer;
};

// Stacks of one thread; only this thread reads and writes them. All zeros means that no stack is
// known.
class RecurringStacks {
  public:
    // Distance in words from the innermost frame's stack pointer.
    using Place = uint16_t;
    static constexpr uint64_t kFurthest_words = UINT16_MAX;
    static constexpr uint32_t kMostWords = 320;  // of a stack

    // The words of a stack that is being added.
    struct Draft {
        uint64_t* values;  // room for kMostWords
        Place* places;
    };

    // Returns the node that was added with this stack, 0 if unknown. `from` is a live frame of the
    // calling thread. A word is read only after the words further in have shown that it is stack
    // memory.
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
                // Go to the next stack that can still match: one that first differs from this stack
                // at the same word, or at an earlier word that has another place.
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

    // Returns false if adding this stack would displace others that are needed more: there are too
    // many different stacks.
    bool wants_another();

    // Returns where to write the words; valid until the next call of a member function.
    Draft draft();

    // Adds the stack of `node`. Its `count` words are in the draft, from the innermost outwards.
    void add(const Registers& from, bool frame_pointer_counts, uint32_t count, uint32_t node);

    void forget();

    uint32_t owner;  // thread id, 0 = free

  private:
    static constexpr uint32_t kStacks = 512;
    static constexpr uint32_t kHeads = 1024;
    static constexpr uint32_t kMostAlike = 64;  // stacks with the same head
    static constexpr uint32_t kWords = 32768;   // words of all stacks
    static constexpr uint32_t kRareTurn = 32;

    struct alignas(64) Entry {
        Registers from;
        uint32_t node;
        uint32_t begin;  // index of its first word
        uint16_t count;
        // Entry numbers start at 1, 0 = none. `next_head`: next head with the same hash. `next`:
        // next stack that begins like this one.
        uint16_t next_head;
        uint16_t next;
        uint16_t alike;              // number of stacks from this one on in the list of `next`
        uint16_t shared;             // number of leading words that `next` has too
        bool next_differs_by_value;  // the first different word has the same place, but another
                                     // value
        bool frame_pointer_counts;
    };

    static uint32_t hash_of(const Registers& from) {
        return static_cast<uint32_t>(
            ((from.address + (from.stack_pointer << 20)) * 0x9e3779b97f4a7c15u) >> 54);
    }

    static_assert(kHeads == 1u << (64 - 54));

    [[nodiscard]] const Entry& entry_of(uint32_t number) const { return entries_[number - 1]; }

    // Returns the index of the first word, from `at` on, that differs in the stack; their count if
    // none does.
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

    uint32_t words_;  // words in use
    uint32_t added_;
    uint32_t found_;
    uint32_t turn_;
    bool rare_;  // most stacks were not found again before there was no room: only one in kRareTurn
                 // is added
    uint16_t heads_[kHeads];
    Entry entries_[kStacks];
    uint64_t values_[kWords];
    Place places_[kWords];
};

}  // namespace fragtrace::preload
