// How to step from a return address to the frame that it belongs to, on x86-64.
//
// Read once per address from the compiler's unwind tables and kept in a lock-free table, a word per
// address. Only what nearly all code has is understood: a frame that begins a fixed distance from
// rsp or rbp, with the return address at its top and rbp saved in it or left alone. Everything else
// (expressions, signal frames, code without tables) is kUnusualFrame: ask libunwind for that stack.
#pragma once

#include "system/sys.h"

#include <stdint.h>

namespace fragtrace::preload {

// Bits 0 to 3: where the caller's rbp lies, 0 = still in rbp, else k for CFA - 8 * (k + 1).
// Bits 4 to 15: n of CFA = base + 8 * n, the CFA being the caller's rsp. Bit 16: the base is rbp.
using UnwindRule = uint32_t;

inline constexpr uint32_t kRuleBits = 17;
inline constexpr UnwindRule kRuleMask = (1u << kRuleBits) - 1;
inline constexpr UnwindRule kUnusualFrame = 0;
inline constexpr UnwindRule kOutermostFrame = 1;  // as the tables mark it; it has no caller
inline constexpr uint32_t kRuleBaseIsFramePointer = 1u << 16;

constexpr uint32_t rule_distance_words(UnwindRule rule) {
    return (rule >> 4) & 0xfff;
}

constexpr uint32_t rule_saved_words(UnwindRule rule) {
    return rule & 0xf;
}

class UnwindRules {
  public:
    // Maps the table; false without memory, or where the C library cannot find tables without
    // locks.
    bool create();

    // Any thread, no locks. `address` is a return address of a live frame, so that its module
    // cannot be unloaded meanwhile.
    UnwindRule rule_of(uint64_t address) {
        for (uint32_t probe = 0; probe < kMostProbes; ++probe) {
            const uint64_t word = load_relaxed(&words_[slot_of(address, probe)]);
            if (word >> kRuleBits == address) {
                return static_cast<UnwindRule>(word) & kRuleMask;
            }
            if (word == 0) {
                break;
            }
        }
        return learn(address);
    }

    // Other code may lie where a module was: everything is read anew.
    void forget();

    // Changes with forget(): whoever keeps what followed from rules compares it.
    [[nodiscard]] uint32_t generation() const { return load_acquire(&generation_); }

  private:
    static constexpr uint32_t kSlots = 65536;
    static constexpr uint32_t kMostProbes = 16;

    static uint32_t slot_of(uint64_t address, uint32_t probe) {
        return (static_cast<uint32_t>((address * 0x9e3779b97f4a7c15u) >> 40) + probe) &
               (kSlots - 1);
    }

    UnwindRule learn(uint64_t address);

    uint64_t* words_;  // address << kRuleBits | rule, 0 = free
    uint32_t generation_;
};

// Whether the C library can find a module's tables without a lock (glibc 2.35).
bool can_read_unwind_rules();
// The rule by the tables of the module at `address`; about a microsecond.
UnwindRule read_unwind_rule(uint64_t address);

}  // namespace fragtrace::preload
