// Rules to step from a return address to the caller's frame, on x86-64.
//
// A rule is read once per address from the compiler's unwind tables and stored in a lock-free
// table, one word per address. Only the most common kind of frame is supported: its start is at a
// fixed distance from rsp or rbp, the return address is at its top, and rbp is saved in it or
// unchanged. Everything else (expressions, signal frames, code without tables) is kUnusualFrame:
// libunwind must walk that stack.
#pragma once

#include "system/sys.h"

#include <stdint.h>

namespace fragtrace::preload {

// The CFA is the caller's rsp.
// Bits 0 to 3: k. If k is 0, rbp still has the caller's value; otherwise it is at CFA - 8 * (k +
// 1). Bits 4 to 15: n, with CFA = base + 8 * n. Bit 16: the base is rbp if 1, rsp if 0.
using UnwindRule = uint32_t;

inline constexpr uint32_t kRuleBits = 17;
inline constexpr UnwindRule kRuleMask = (1u << kRuleBits) - 1;
inline constexpr UnwindRule kUnusualFrame = 0;
inline constexpr UnwindRule kOutermostFrame = 1;  // marked so by the tables; it has no caller
inline constexpr uint32_t kRuleBaseIsFramePointer = 1u << 16;

constexpr uint32_t rule_distance_words(UnwindRule rule) {
    return (rule >> 4) & 0xfff;
}

constexpr uint32_t rule_saved_words(UnwindRule rule) {
    return rule & 0xf;
}

class UnwindRules {
  public:
    // Maps the table. Returns false without memory, or if the C library cannot find tables without
    // locks.
    bool create();

    // Any thread, no locks. `address` must be a return address of a live frame, so that its module
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

    // Called when a module was unloaded, because other code may be loaded there: all rules are read
    // again.
    void forget();

    // Changes with forget(). Code that stores results of rules must compare it.
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

// Returns whether the C library can find a module's tables without a lock (since glibc 2.35).
bool can_read_unwind_rules();
// Reads the rule from the tables of the module at `address`; takes about a microsecond.
UnwindRule read_unwind_rule(uint64_t address);

}  // namespace fragtrace::preload
