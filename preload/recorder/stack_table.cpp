#include "recorder/stack_table.h"

namespace fragtrace::preload {

bool StackTable::create(Ring* ring) {
    ring_ = ring;
    few_ = static_cast<uint64_t*>(map_private((first_table().last_slot + 1) * sizeof *few_));
    known_ = static_cast<uint64_t*>(map_private(kKnownStacks * sizeof *known_));
    return few_ != nullptr && known_ != nullptr;
}

void StackTable::abandon() {
    unmap(few_, (first_table().last_slot + 1) * sizeof *few_);
    unmap(many_, (second_table().last_slot + 1) * sizeof *many_);
    unmap(known_, kKnownStacks * sizeof *known_);
    few_ = many_ = known_ = nullptr;
}

bool StackTable::map_second_table() {
    const size_t size_bytes = (second_table().last_slot + 1) * sizeof *many_;
    auto* made = static_cast<uint64_t*>(map_private(size_bytes));
    uint64_t* none = nullptr;
    if (made != nullptr && !__atomic_compare_exchange_n(
                               &many_, &none, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        unmap(made, size_bytes);  // another thread mapped it first
    }
    return load_acquire(&many_) != nullptr;
}

uint32_t StackTable::insert(
    uint32_t parent, uint64_t frame, uint64_t hash, uint64_t* slot, uint32_t line) {
    uint32_t* count = &ring_->header->node_count;
    uint32_t number = load_relaxed(count);
    if (number >= kFewNodes && load_acquire(&many_) == nullptr) {
        if (!map_second_table()) {
            return 0;
        }
        // Runs once: the frame is not in the first table, so its place is in the second one.
        static_cast<void>(find_in(second_table(), parent, frame, hash, &slot));
    }
    do {
        if (!ring_->reaches(&ring_->node_room, (uint64_t{number} + 1) * sizeof(StackNode))) {
            return 0;
        }
    } while (!__atomic_compare_exchange_n(
        count, &number, number + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    StackNode* node = &ring_->nodes[number];
    node->parent = parent;
    node->line = line;
    // The frame is stored last: a node whose frame is 0 is not filled yet.
    store_release(&node->frame, frame);

    const uint64_t entry = (hash >> 32 << 32) | number;
    uint64_t expected = 0;
    if (__atomic_compare_exchange_n(
            slot, &expected, entry, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)) {
        return number;
    }
    // Another thread took the slot. Unless it did so for the same frame, continue the search after
    // it.
    uint64_t* next = nullptr;
    const uint32_t known = find(parent, frame, hash, &next);
    if (known == 0 && next != nullptr) {
        expected = 0;
        __atomic_compare_exchange_n(
            next, &expected, entry, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }
    return known != 0 ? known : number;
}

}  // namespace fragtrace::preload
