// A lock-free table of values by address. It grows; entries without memory are counted (as losses
// of the trace, see trace_facts.cpp).
//
// The caller orders calls about one address (for blocks and their events: by the allocator's
// mutex). Calls about different addresses may come from any thread.
#pragma once

#include "system/losses.h"
#include "system/sys.h"

#include <stdint.h>

namespace fragtrace::preload {

// kSlots: size of the first part, which always exists. Each further part has four times as many
// slots as the previous one.
template <typename Value, uint32_t kSlots>
class AddressTable {
  public:
    // True if the table is empty; costs one load.
    [[nodiscard]] bool empty() const { return load_acquire(&count_) == 0; }

    // Adds or replaces an entry. Returns false without memory.
    bool insert(uint64_t address, Value value) {
        if (Slot* known = find(address); known != nullptr) {
            store_relaxed(&known->value, value);
            return true;
        }
        for (uint32_t part = 0; part <= kMoreParts; ++part) {
            Slot* slots = part_or_new(part);
            for (uint32_t probe = 0; slots != nullptr && probe < kProbes; ++probe) {
                Slot& slot = at(slots, part, address, probe);
                uint64_t expected = 0;
                if (__atomic_compare_exchange_n(&slot.address,
                                                &expected,
                                                address,
                                                false,
                                                __ATOMIC_ACQ_REL,
                                                __ATOMIC_ACQUIRE)) {
                    store_relaxed(&slot.value, value);
                    __atomic_fetch_add(&count_, 1, __ATOMIC_RELEASE);
                    return true;
                }
            }
        }
        count_up(&g_events_without_room);
        return false;
    }

    // Finds an entry and removes it.
    bool take(uint64_t address, Value* value) {
        Slot* slot = find(address);
        if (slot == nullptr) {
            return false;
        }
        *value = load_relaxed(&slot->value);
        if (!__atomic_compare_exchange_n(
                &slot->address, &address, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            return false;
        }
        __atomic_fetch_sub(&count_, 1, __ATOMIC_ACQ_REL);
        return true;
    }

    [[nodiscard]] bool contains(uint64_t address) { return find(address) != nullptr; }

    bool look_up(uint64_t address, Value* value) {
        Slot* slot = find(address);
        if (slot != nullptr) {
            *value = load_relaxed(&slot->value);
        }
        return slot != nullptr;
    }

    // Calls `change(address, value)` for each entry; it returns the new value, 0 removes the entry.
    template <typename Change>
    void change_all(Change change) {
        for (uint32_t part = 0; part <= kMoreParts; ++part) {
            Slot* slots = part_of(part);
            for (uint64_t i = 0; slots != nullptr && i < slots_of(part); ++i) {
                uint64_t address = load_acquire(&slots[i].address);
                if (address == 0) {
                    continue;
                }
                const Value value = change(address, load_relaxed(&slots[i].value));
                store_relaxed(&slots[i].value, value);
                if (value == 0 && __atomic_compare_exchange_n(&slots[i].address,
                                                              &address,
                                                              0,
                                                              false,
                                                              __ATOMIC_ACQ_REL,
                                                              __ATOMIC_ACQUIRE)) {
                    __atomic_fetch_sub(&count_, 1, __ATOMIC_ACQ_REL);
                }
            }
        }
    }

  private:
    struct Slot {
        uint64_t address;  // 0 = free
        Value value;
    };

    static constexpr uint32_t kProbes = 64;
    static constexpr uint32_t kMoreParts = 6;

    static constexpr uint64_t slots_of(uint32_t part) { return uint64_t{kSlots} << (2 * part); }

    static Slot& at(Slot* slots, uint32_t part, uint64_t address, uint32_t probe) {
        const uint64_t hash = (address * 0x9e3779b97f4a7c15ull) >> 32;
        return slots[(hash + probe) % slots_of(part)];
    }

    Slot* part_of(uint32_t part) { return part == 0 ? first_ : load_acquire(&more_[part - 1]); }

    // Two threads may create the part at once; one of them unmaps its own.
    Slot* part_or_new(uint32_t part) {
        Slot* slots = part_of(part);
        if (slots != nullptr) {
            return slots;
        }
        const uint64_t size_bytes = slots_of(part) * sizeof(Slot);
        auto* made = static_cast<Slot*>(map_private(size_bytes));
        if (made != nullptr &&
            !__atomic_compare_exchange_n(
                &more_[part - 1], &slots, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            unmap(made, size_bytes);
            return slots;
        }
        return made;
    }

    Slot* find(uint64_t address) {
        if (empty()) {
            return nullptr;
        }
        for (uint32_t part = 0; part <= kMoreParts; ++part) {
            Slot* slots = part_of(part);
            if (slots == nullptr) {
                return nullptr;
            }
            for (uint32_t probe = 0; probe < kProbes; ++probe) {
                Slot& slot = at(slots, part, address, probe);
                if (load_acquire(&slot.address) == address) {
                    return &slot;
                }
            }
        }
        return nullptr;
    }

    Slot first_[kSlots];
    Slot* more_[kMoreParts];
    int64_t count_;
};

}  // namespace fragtrace::preload
