// A vector for long tables of small items. Growing does not move existing items, except in the
// first chunk.
//
// Access takes constant time. Later chunks use huge pages where the system provides them. The
// reason: the first access to each page takes much of the time to fill a long table. Once filled,
// the vector can be shared between threads; several threads may write different items.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <sys/mman.h>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

// Asks for huge pages for every allocation of at least one huge page.
template <typename T>
struct HugePageAllocator {
    using value_type = T;

    static constexpr std::size_t kPageBytes = std::size_t{2} << 20;

    HugePageAllocator() = default;

    template <typename Other>
    HugePageAllocator(const HugePageAllocator<Other>&) {}  // NOLINT: as allocators convert

    T* allocate(std::size_t count) {
        if (!is_long(count)) {
            return static_cast<T*>(::operator new(count * sizeof(T)));
        }
        void* memory = ::operator new (count * sizeof(T), std::align_val_t{kPageBytes});
        madvise(memory, count * sizeof(T), MADV_HUGEPAGE);  // only a hint; may fail
        return static_cast<T*>(memory);
    }

    void deallocate(T* memory, std::size_t count) {
        if (is_long(count)) {
            ::operator delete (memory, std::align_val_t{kPageBytes});
        } else {
            ::operator delete(memory);
        }
    }

    // resize() leaves new items uninitialised, because they are written before they are read.
    template <typename Item>
    void construct(Item* item) {
        ::new (static_cast<void*>(item)) Item;
    }

    template <typename Item, typename... Values>
    void construct(Item* item, Values&&... values) {
        ::new (static_cast<void*>(item)) Item(std::forward<Values>(values)...);
    }

    bool operator==(const HugePageAllocator&) const { return true; }

  private:
    static bool is_long(std::size_t count) { return count * sizeof(T) >= kPageBytes; }
};

template <typename T>
class ChunkedVector {
  public:
    // A chunk of small items still fills at least one huge page.
    static constexpr std::size_t kChunkItems =
        std::max(std::size_t{1} << 18, std::bit_ceil(HugePageAllocator<T>::kPageBytes / sizeof(T)));

    [[nodiscard]] std::size_t size() const { return size_; }

    [[nodiscard]] bool empty() const { return size_ == 0; }

    const T& operator[](std::size_t at) const {
        return chunks_[at / kChunkItems][at % kChunkItems];
    }

    T& operator[](std::size_t at) { return chunks_[at / kChunkItems][at % kChunkItems]; }

    void push_back(const T& item) {
        if (size_ % kChunkItems == 0) {
            chunks_.emplace_back();
            // The first chunk grows with its items, because most tables are short.
            chunks_.back().reserve(size_ == 0 ? 0 : kChunkItems);
        }
        chunks_.back().push_back(item);
        ++size_;
    }

    // Appends `count` contiguous, uninitialised items. They must fit into the current chunk (see
    // room()).
    T* grow(std::size_t count) {
        if (size_ % kChunkItems == 0) {
            chunks_.emplace_back();
            chunks_.back().reserve(size_ == 0 ? 0 : kChunkItems);
        }
        size_ += count;
        chunks_.back().resize(chunks_.back().size() + count);
        return chunks_.back().data() + (chunks_.back().size() - count);
    }

    // The number of items that grow() can still place contiguously.
    [[nodiscard]] std::size_t room() const { return kChunkItems - size_ % kChunkItems; }

    T& back() { return chunks_.back().back(); }

    [[nodiscard]] const T& back() const { return chunks_.back().back(); }

  private:
    std::vector<std::vector<T, HugePageAllocator<T>>> chunks_;
    std::size_t size_ = 0;
};

}  // namespace fragtrace::analyzer
