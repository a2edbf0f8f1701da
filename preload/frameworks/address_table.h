// What is known about an address: a fixed table without locks. A full neighbourhood loses the
// entry.
//
// Calls about one address are ordered by the caller (blocks and their events: by the pool's mutex);
// calls about different ones may come from any thread.
#pragma once

#include <stdint.h>

namespace fragtrace::preload {

template <typename Value, uint32_t kSlots>
class AddressTable {
  public:
    // True where nothing can be found: one load.
    [[nodiscard]] bool empty() const { return __atomic_load_n(&count_, __ATOMIC_ACQUIRE) == 0; }

    // Replaces what was known. False when there is no room.
    bool insert(uint64_t address, Value value) {
        for (uint32_t probe = 0; probe < kProbes; ++probe) {
            Slot& slot = at(address, probe);
            uint64_t expected = 0;
            if (__atomic_compare_exchange_n(
                    &slot.address, &expected, address, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
                __atomic_store_n(&slot.value, value, __ATOMIC_RELAXED);
                __atomic_fetch_add(&count_, 1, __ATOMIC_RELEASE);
                return true;
            }
            if (expected == address) {
                __atomic_store_n(&slot.value, value, __ATOMIC_RELAXED);
                return true;
            }
        }
        return false;
    }

    // Finds an entry and takes it out.
    bool take(uint64_t address, Value* value) {
        Slot* slot = find(address);
        if (slot == nullptr) {
            return false;
        }
        *value = __atomic_load_n(&slot->value, __ATOMIC_RELAXED);
        if (!__atomic_compare_exchange_n(
                &slot->address, &address, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            return false;
        }
        __atomic_fetch_sub(&count_, 1, __ATOMIC_ACQ_REL);
        return true;
    }

    [[nodiscard]] bool contains(uint64_t address) { return find(address) != nullptr; }

  private:
    struct Slot {
        uint64_t address;  // 0 = free
        Value value;
    };

    static constexpr uint32_t kProbes = 64;

    Slot& at(uint64_t address, uint32_t probe) {
        const uint64_t hash = (address * 0x9e3779b97f4a7c15ull) >> 40;
        return slots_[(static_cast<uint32_t>(hash) + probe) % kSlots];
    }

    Slot* find(uint64_t address) {
        if (empty()) {
            return nullptr;
        }
        for (uint32_t probe = 0; probe < kProbes; ++probe) {
            Slot& slot = at(address, probe);
            if (__atomic_load_n(&slot.address, __ATOMIC_ACQUIRE) == address) {
                return &slot;
            }
        }
        return nullptr;
    }

    Slot slots_[kSlots];
    int64_t count_;
};

}  // namespace fragtrace::preload
