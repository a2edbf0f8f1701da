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
        const uint64_t hash = hash_of(from);
        for (uint32_t probe = 0; probe < kMostProbes; ++probe) {
            const Entry& entry = entries_[(hash + probe) % kStacks];
            if (entry.generation != generation_ + 1) {
                break;
            }
            if (entry.from.stack_pointer == from.stack_pointer &&
                entry.from.address == from.address &&
                (entry.frame_pointer_counts == 0 ||
                 entry.from.frame_pointer == from.frame_pointer) &&
                is_there(entry)) {
                ++found_;
                return entry.node;
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
    static constexpr uint32_t kMostProbes = 8;
    static constexpr uint32_t kWords = 32768;  // of all stacks
    static constexpr uint32_t kAtOnce = 4;     // words compared in a turn of the loop
    static constexpr uint32_t kRareTurn = 32;

    struct alignas(64) Entry {
        Registers from;
        uint32_t generation;  // generation_ + 1; else the entry is free
        uint32_t frame_pointer_counts;
        uint32_t node;
        uint32_t begin;  // of its words
        uint32_t count;  // a multiple of kAtOnce
    };

    static uint64_t hash_of(const Registers& from) {
        return ((from.address + (from.stack_pointer << 20)) * 0x9e3779b97f4a7c15u) >> 40;
    }

    [[nodiscard]] bool is_there(const Entry& entry) const {
        const auto* stack = reinterpret_cast<const uint64_t*>(entry.from.stack_pointer);
        const uint64_t* values = &values_[entry.begin];
        const Place* places = &places_[entry.begin];
        for (const uint64_t* end = values + entry.count; values != end;
             values += kAtOnce, places += kAtOnce) {
            if (stack[places[0]] != values[0] || stack[places[1]] != values[1] ||
                stack[places[2]] != values[2] || stack[places[3]] != values[3]) {
                return false;
            }
        }
        return true;
    }

    uint32_t generation_;
    uint32_t words_;  // used
    uint32_t added_;
    uint32_t found_;
    uint32_t turn_;
    bool rare_;  // most were not found again before there was no room: one in kRareTurn is added
    Entry entries_[kStacks];
    uint64_t values_[kWords];
    Place places_[kWords];
};

}  // namespace fragtrace::preload
