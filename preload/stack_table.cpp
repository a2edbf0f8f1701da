#include "stack_table.h"

namespace fragtrace::preload {

bool StackTable::create(Ring* ring) {
    ring_ = ring;
    entries_ = static_cast<uint64_t*>(map_private(kSlots * sizeof *entries_));
    known_ = static_cast<uint64_t*>(map_private(kKnownStacks * sizeof *known_));
    return entries_ != nullptr && known_ != nullptr;
}

void StackTable::abandon() {
    unmap(entries_, kSlots * sizeof *entries_);
    unmap(known_, kKnownStacks * sizeof *known_);
    entries_ = known_ = nullptr;
}

uint32_t StackTable::insert(
    uint32_t parent, uint64_t frame, uint64_t hash, uint32_t slot, uint32_t line) {
    uint32_t* count = &ring_->header->node_count;
    uint32_t number = load_relaxed(count);
    do {
        if (number >= kNodeCapacity) {
            return 0;
        }
    } while (!__atomic_compare_exchange_n(
        count, &number, number + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    StackNode* node = &ring_->nodes[number];
    node->parent = parent;
    node->line = line;
    // The frame last: a node whose frame is 0 has not been filled yet.
    store_release(&node->frame, frame);

    const uint64_t entry = (hash >> 32 << 32) | number;
    uint64_t expected = 0;
    if (__atomic_compare_exchange_n(
            &entries_[slot], &expected, entry, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)) {
        return number;
    }
    // Somebody took the slot. If not for this very frame, the search goes on behind it.
    uint32_t next = 0;
    const uint32_t known = find(parent, frame, hash, &next);
    if (known == 0 && next != kNoSlot) {
        expected = 0;
        __atomic_compare_exchange_n(
            &entries_[next], &expected, entry, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }
    return known != 0 ? known : number;
}

}  // namespace fragtrace::preload
