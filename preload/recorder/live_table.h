// What is held at this moment, in all layers: the events of a trace that still matter.
//
// Fed by the drain with every event in order, read when a part of the trace begins with a
// checkpoint. Keeps an allocation as the event that made it, until the event that ends it; of what
// a program sets (a memory fraction, a pool's attributes), the last event. The last report of free
// memory is brought up to date by what the process has allocated and freed since. Grows with what
// is held and shrinks with it, in memory from the kernel: about 105 bytes an entry. One user at a
// time.
//
// Entries lie densely, in no order, and do not move; a hash table of their numbers finds them. So
// looking for one that is not there reads 8 bytes, and what few are held stays in the cache.
#pragma once

#include <fragtrace/format.h>

#include <stddef.h>
#include <stdint.h>

namespace fragtrace::preload {

class LiveTable {
  public:
    // False without memory; the table may then be abandoned.
    bool create();
    void abandon();

    void apply(const EventRecord& event);

    // Makes the processor fetch what apply() will read for these, if they are a block's: `later` is
    // called for again as `sooner`. Does nothing where the table is small enough for the cache.
    void fetch(const EventRecord& sooner, const EventRecord& later) const;

    // Events that copy_to() gives.
    [[nodiscard]] uint64_t event_count() const;
    // All of them by their sequence numbers, reports of free memory last. `events` has room for
    // event_count().
    void copy_to(EventRecord* events) const;

    // Memory that it takes.
    [[nodiscard]] uint64_t size_bytes() const {
        return end_ * sizeof(Entry) + 2 * capacity_ * sizeof(Place);
    }

    [[nodiscard]] uint64_t lost() const { return lost_; }  // events that found no memory

  private:
    struct Entry {
        uint64_t key;    // free: the number of the next free one, 0 = none
        uint32_t count;  // retains, uses, open ranges, pending events
        Thing thing;     // kNone: a free entry
        EventRecord event;
    };

    struct Place {
        uint32_t hash;
        uint32_t entry;  // its number, 0 = free
    };

    [[nodiscard]] Place* place_of(Thing thing, uint64_t key) const;
    // The entry; one of kNone, which nobody writes to, where there is none.
    Entry* find(Thing thing, uint64_t key) const;
    Entry* put(Thing thing, uint64_t key, const EventRecord& event);
    void erase(Thing thing, uint64_t key);
    void count(Thing thing, uint64_t key, const EventRecord& event, bool up);
    void remove(Place* gap);
    void count_held(const Entry& entry, bool begins);
    [[nodiscard]] uint64_t held_bytes(uint16_t device) const;
    [[nodiscard]] EventRecord free_memory_now(const EventRecord& report) const;
    bool grow();
    void shrink();
    // Removes the entries that do not outlive an event.
    using Keep = bool(const Entry& entry, const EventRecord& event);
    void forget(Keep* keep, const EventRecord& event);

    void begin_or_end(const EventRecord& event);
    void unmap_range(const EventRecord& event);
    void block_alloc(const EventRecord& event);
    void block_free(const EventRecord& event);
    void pending_event(const EventRecord& event);
    void event_complete(const EventRecord& event);
    void memory_info(const EventRecord& event);
    void range(const EventRecord& event);
    void end_range_of_thread(const EventRecord& event, uint32_t open);
    [[nodiscard]] bool has_context(uint16_t device) const;
    [[nodiscard]] Entry* find_physical(uint64_t handle) const;
    void forget_device(const EventRecord& event);
    void forget_pool_blocks(const EventRecord& event);
    void forget_ranges(const EventRecord& event);
    void forget_pending(uint64_t block);
    void forget_orphans();
    void forget_without(Thing thing, Thing needed);
    void remember_segment(Thing thing, const EventRecord& event);
    void give_segment_its_stream(const EventRecord& block);

    // Memory that the framework's allocator has just obtained: whose stream and pool it serves is
    // told by the first block in it, and outlives that block.
    static constexpr uint32_t kNewSegments = 16;
    static constexpr uint16_t kMostDevices = 64;

    struct NewSegment {
        uint64_t address;
        Thing thing;  // kNone = free
    };

    Entry* entries_;   // numbers from 1; number 0 is the one of kNone
    Place* places_;    // twice as many as capacity_: at most half of them are taken
    size_t capacity_;  // of entries_, a power of two
    size_t end_;       // entries from here on were never used
    size_t used_;
    uint64_t free_;  // number of the first free entry below end_, 0 = none
    uint64_t lost_;
    uint64_t held_bytes_[kMostDevices];  // device memory that entries stand for
    NewSegment new_segments_[kNewSegments];
    uint32_t new_segment_count_;
    uint32_t next_new_segment_;
};

}  // namespace fragtrace::preload
