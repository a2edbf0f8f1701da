#include "stacks/unwind_rules.h"

#include <sys/mman.h>

namespace fragtrace::preload {

bool UnwindRules::create() {
    if (words_ == nullptr && can_read_unwind_rules()) {
        words_ = static_cast<uint64_t*>(map_private(kSlots * sizeof *words_));
    }
    return words_ != nullptr;
}

void UnwindRules::forget() {
    if (words_ == nullptr) {
        return;
    }
    // Sets all words to zero, also for concurrent readers.
    madvise(words_, kSlots * sizeof *words_, MADV_DONTNEED);
    __atomic_fetch_add(&generation_, 1, __ATOMIC_RELEASE);
}

// If all probed slots are full, the new word replaces the first one: reading a rule again costs
// about a microsecond.
UnwindRule UnwindRules::learn(uint64_t address) {
    const UnwindRule rule = read_unwind_rule(address);
    if (address >> (64 - kRuleBits) != 0) {
        return rule;
    }
    const uint64_t word = (address << kRuleBits) | rule;
    for (uint32_t probe = 0; probe < kMostProbes; ++probe) {
        uint64_t expected = 0;
        if (__atomic_compare_exchange_n(&words_[slot_of(address, probe)],
                                        &expected,
                                        word,
                                        false,
                                        __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED) ||
            expected == word) {
            return rule;
        }
    }
    __atomic_store_n(&words_[slot_of(address, 0)], word, __ATOMIC_RELAXED);
    return rule;
}

}  // namespace fragtrace::preload
