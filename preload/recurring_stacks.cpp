// See recurring_stacks.h.
#include "recurring_stacks.h"

namespace fragtrace::preload {

// Adding a stack costs about as much as two walks.
bool RecurringStacks::wants_another() {
    return !rare_ || ++turn_ % kRareTurn == 0;
}

RecurringStacks::Draft RecurringStacks::draft() {
    if (words_ + kMostWords > kWords || added_ >= kStacks) {
        const bool rare = found_ < 2 * added_;
        forget();
        rare_ = rare;
    }
    return {&values_[words_], &places_[words_]};
}

void RecurringStacks::add(const Registers& from,
                          bool frame_pointer_counts,
                          uint32_t count,
                          uint32_t node) {
    // Up to a whole turn of the loop: the last word again.
    for (; count % kAtOnce != 0 && count != 0; ++count) {
        values_[words_ + count] = values_[words_ + count - 1];
        places_[words_ + count] = places_[words_ + count - 1];
    }
    const uint64_t hash = hash_of(from);
    Entry* entry =
        &entries_[(hash + added_ % kMostProbes) % kStacks];  // to give up if all are used
    for (uint32_t probe = 0; probe < kMostProbes; ++probe) {
        Entry* other = &entries_[(hash + probe) % kStacks];
        if (other->generation != generation_ + 1) {
            entry = other;
            break;
        }
    }
    *entry = {from, generation_ + 1, frame_pointer_counts ? 1u : 0u, node, words_, count};
    words_ += count;
    ++added_;
}

void RecurringStacks::forget() {
    ++generation_;
    words_ = added_ = found_ = 0;
    rare_ = false;
}

}  // namespace fragtrace::preload
