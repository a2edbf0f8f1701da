// The pools of the program (recorder/program_pools.h) of a framework's allocators: one for each
// allocator object. All functions can be called from any thread.
#pragma once

#include "recorder/program_pools.h"
#include "system/losses.h"
#include "system/sys.h"
#include "system/thread_state.h"

#include <stddef.h>
#include <stdint.h>

namespace fragtrace::preload {

class AllocatorPools {
  public:
    // The pool of an allocator; 0 if it has none. Takes no lock.
    [[nodiscard]] uint32_t find(const void* allocator) const {
        for (const Entry& entry : entries_) {
            if (load_acquire(&entry.allocator) == allocator) {
                return load_relaxed(&entry.pool);
            }
        }
        return 0;
    }

    // Finds the pool, or makes one: `create()` returns its number. Returns 0 if there are already
    // kMostAllocators, if another thread has the lock for too long, or if `create` returns 0.
    template <typename Create>
    uint32_t find_or_create(const void* allocator, Create create) {
        if (const uint32_t pool = find(allocator)) {
            return pool;
        }
        const SlowPath slow_path;
        if (!lock_.lock_within(kWait_ns)) {
            count_up(&g_entries_without_room);
            return 0;
        }
        uint32_t pool = find(allocator);
        Entry* const place = pool == 0 ? entry_of(nullptr) : nullptr;
        if (place != nullptr && (pool = create()) != 0) {
            __atomic_store_n(&place->pool, pool, __ATOMIC_RELAXED);
            store_release(&place->allocator, allocator);
        } else if (place == nullptr && pool == 0) {
            count_up(&g_entries_without_room);
        }
        lock_.unlock();
        return pool;
    }

    // The allocator is destroyed, and its pool ends.
    void end(const void* allocator) {
        const SlowPath slow_path;
        if (!lock_.lock_within(kWait_ns)) {
            return;
        }
        if (Entry* const entry = entry_of(allocator)) {
            end_pool(entry);
        }
        lock_.unlock();
    }

    // All pools end.
    void end_all() {
        const SlowPath slow_path;
        if (!lock_.lock_within(kWait_ns)) {
            return;
        }
        for (Entry& entry : entries_) {
            if (entry.allocator != nullptr) {
                end_pool(&entry);
            }
        }
        lock_.unlock();
    }

  private:
    // A process has one allocator for each device and a few for memory of the host.
    static constexpr size_t kMostAllocators = 128;
    static constexpr uint64_t kWait_ns = 50 * kMillisecond_ns;

    struct Entry {
        const void* allocator;  // nullptr: the entry is free
        uint32_t pool;
    };

    Entry* entry_of(const void* allocator) {
        for (Entry& entry : entries_) {
            if (entry.allocator == allocator) {
                return &entry;
            }
        }
        return nullptr;
    }

    static void end_pool(Entry* entry) {
        store_release(&entry->allocator, static_cast<const void*>(nullptr));
        destroy_program_pool(entry->pool);
    }

    Entry entries_[kMostAllocators];
    Lock lock_;
};

}  // namespace fragtrace::preload
