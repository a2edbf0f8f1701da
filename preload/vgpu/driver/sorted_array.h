// A growable array sorted by address, for a few thousand entries. It is the driver's only
// container. Elements are plain data with a `start` and a `size`. Not thread safe: the state lock
// protects it.
#pragma once

#include <fragtrace/sizes.h>

#include <cstdint>
#include <stdlib.h>
#include <string.h>

namespace fragtrace::vgpu {

template <typename Element>
class SortedArray {
  public:
    Element* begin() { return items_; }

    Element* end() { return items_ + count_; }

    int count() const { return count_; }

    Element& operator[](int index) { return items_[index]; }

    // Index of the first element whose start is above `address`.
    int upper_bound(uint64_t address) const {
        int low = 0;
        int high = count_;
        while (low < high) {
            const int middle = (low + high) / 2;
            if (items_[middle].start > address) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        return low;
    }

    // The element that contains `address`, or null.
    Element* find(uint64_t address) {
        const int index = upper_bound(address) - 1;
        if (index < 0 || address - items_[index].start >= items_[index].size) return nullptr;
        return &items_[index];
    }

    // The element that starts at `address`, or null.
    Element* find_start(uint64_t address) {
        const int index = upper_bound(address) - 1;
        return index >= 0 && items_[index].start == address ? &items_[index] : nullptr;
    }

    Element* insert(const Element& element) {
        if (count_ == room_) {
            const int room = room_ == 0 ? 64 : room_ * 2;
            void* grown = realloc(static_cast<void*>(items_), sizeof(Element) * size_t(room));
            if (grown == nullptr) return nullptr;
            items_ = static_cast<Element*>(grown);
            room_ = room;
        }
        const int index = upper_bound(element.start);
        memmove(static_cast<void*>(items_ + index + 1),
                static_cast<void*>(items_ + index),
                sizeof(Element) * size_t(count_ - index));
        items_[index] = element;
        ++count_;
        return &items_[index];
    }

    void erase(Element* element) {
        memmove(static_cast<void*>(element),
                static_cast<void*>(element + 1),
                sizeof(Element) * size_t(end() - element - 1));
        --count_;
    }

    void release() {
        free(static_cast<void*>(items_));
        items_ = nullptr;
        count_ = room_ = 0;
    }

    // Returns the lowest aligned address in [base, limit) that starts `size` free bytes, or 0.
    uint64_t first_fit(uint64_t base, uint64_t limit, uint64_t size, uint64_t alignment) const {
        uint64_t candidate = round_up(base, alignment);
        const int before = upper_bound(candidate) - 1;
        for (int i = before < 0 ? 0 : before; i < count_; ++i) {
            if (items_[i].start + items_[i].size <= candidate) continue;
            if (items_[i].start >= candidate && items_[i].start - candidate >= size) break;
            candidate = round_up(items_[i].start + items_[i].size, alignment);
        }
        return candidate < limit && limit - candidate >= size ? candidate : 0;
    }

  private:
    Element* items_ = nullptr;
    int count_ = 0;
    int room_ = 0;
};

}  // namespace fragtrace::vgpu
