#include "stacks/recurring_stacks.h"

#include <string.h>

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
    uint16_t* head = &heads_[hash_of(from)];
    const auto begins_alike = [&](const Entry& other) {
        return other.from.stack_pointer == from.stack_pointer &&
               other.from.address == from.address &&
               other.frame_pointer_counts == frame_pointer_counts &&
               (!frame_pointer_counts || other.from.frame_pointer == from.frame_pointer);
    };
    while (*head != 0 && !begins_alike(entry_of(*head))) {
        head = &entries_[*head - 1].next_head;
    }
    Entry* entry = &entries_[added_];
    *entry = {};
    entry->from = from;
    entry->node = node;
    entry->begin = words_;
    entry->count = static_cast<uint16_t>(count);
    entry->frame_pointer_counts = frame_pointer_counts;
    if (*head != 0) {
        const Entry& next = entry_of(*head);
        entry->next_head = next.next_head;
        if (next.alike < kMostAlike) {  // too many alike: the older ones are given up
            const uint32_t both = next.count < count ? next.count : count;
            const uint64_t* values = &values_[next.begin];
            const Place* places = &places_[next.begin];
            uint32_t shared = 0;
            while (shared < both && values[shared] == values_[words_ + shared] &&
                   places[shared] == places_[words_ + shared]) {
                ++shared;
            }
            entry->next = *head;
            entry->alike = next.alike;
            entry->shared = static_cast<uint16_t>(shared);
            entry->next_differs_by_value =
                shared < both && places[shared] == places_[words_ + shared];
        }
    }
    ++entry->alike;
    words_ += count;
    ++added_;
    *head = static_cast<uint16_t>(added_);
}

void RecurringStacks::forget() {
    memset(heads_, 0, sizeof heads_);
    words_ = added_ = found_ = 0;
    rare_ = false;
}

}  // namespace fragtrace::preload
