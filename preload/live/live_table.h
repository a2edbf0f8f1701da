// The live table: all live allocations of all layers, as the events of the trace that still matter.
//
// The drain updates it with every event, in order. It is read when a part of the trace begins with
// a checkpoint. An allocation is kept as the event that began it, until the event that ends it. For
// settings of the program (a memory fraction, a pool's attributes), the last event is kept. The
// last report of free memory is adjusted by what the process has allocated and freed since then.
// The table grows and shrinks with the number of live allocations, in memory from the kernel: about
// 105 bytes per entry. It is not thread-safe.
//
// The end of a pool of the program must not look at all entries. It leaves the pool's blocks as
// dead entries, which count as absent. A full table drops them before it grows.
//
// Where frees were lost, entries stay that no event will end. Memory that is in use belongs to one
// allocation of its kind. So an entry that overlaps a later one is dropped, before a full table
// grows and before a checkpoint. The others stay until their memory is allocated again.
//
// Entries are stored densely, in no order, and do not move; a hash table finds them by number. So a
// lookup that finds nothing reads only 8 bytes, and a table with few entries stays in the cache.
#pragma once

#include <fragtrace/format.h>

#include <stddef.h>
#include <stdint.h>

namespace fragtrace::preload {

class LiveTable {
  public:
    // Returns false without memory. abandon() is then allowed.
    bool create();
    void abandon();

    void apply(const EventRecord& event);

    // From now on, frees may be missing among the events.
    void expect_lost_frees() { frees_lost_ = true; }

    // Removes the allocations whose free must have been lost, because a later one overlaps them.
    // Does nothing if no lost frees are expected, or without memory for the search.
    void drop_overlapped();

    // Prefetches the memory that apply() will read for these two events, if they are block events.
    // Each event should be passed twice: first as `later`, then as `sooner`. Does nothing if the
    // table is small enough for the cache.
    void fetch(const EventRecord& sooner, const EventRecord& later) const;

    // Returns the number of events that copy_to() writes.
    [[nodiscard]] uint64_t event_count() const;
    // Copies all events in order of sequence number, reports of free memory last. `events` needs
    // room for event_count().
    void copy_to(EventRecord* events) const;

    // Returns the memory that the table uses.
    [[nodiscard]] uint64_t size_bytes() const {
        return end_ * sizeof(Entry) + 2 * capacity_ * sizeof(Place);
    }

    [[nodiscard]] uint64_t lost() const { return lost_; }  // events lost for lack of memory

  private:
    struct Entry {
        uint64_t key;    // in a free entry: number of the next free entry, 0 = none
        uint32_t count;  // retains, uses, open ranges, pending events; a block's label, 0 = none
        Thing thing;     // kNone: a free entry
        EventRecord event;
    };

    struct Place {
        uint32_t hash;
        uint32_t entry;  // number of the entry, 0 = free
    };

    [[nodiscard]] Place* place_of(Thing thing, uint64_t key) const;

    [[nodiscard]] bool is_dead(const Entry& entry) const {
        return entry.thing == Thing::kProgramBlock &&
               entry.event.sequence < pool_ends_[entry.event.pool % kMostPools];
    }

    // Returns the entry. If there is none: an entry with kNone, which nobody writes to.
    Entry* find(Thing thing, uint64_t key) const;
    Entry* put(Thing thing, uint64_t key, const EventRecord& event);
    void erase(Thing thing, uint64_t key);
    void count(Thing thing, uint64_t key, const EventRecord& event, bool up);
    void remove(Place* gap);
    void count_held(const Entry& entry, bool begins);
    [[nodiscard]] uint64_t held_bytes(uint16_t device) const;
    [[nodiscard]] EventRecord free_memory_now(const EventRecord& report) const;
    bool grow();
    bool make_room(uint64_t sequence);
    void drop_dead();
    void shrink();
    // Removes all entries for which `keep` returns false.
    using Keep = bool(const Entry& entry, const EventRecord& event);
    void forget(Keep* keep, const EventRecord& event);

    void begin_or_end(const EventRecord& event);
    void unmap_range(const EventRecord& event);
    void block_alloc(const EventRecord& event);
    void block_free(const EventRecord& event);
    void block_label(const EventRecord& event);
    void program_pool(const EventRecord& event);
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

    // Memory that the framework's allocator has just allocated. Its first block shows its stream
    // and pool, which stay known after that block is freed.
    static constexpr uint32_t kNewSegments = 16;
    static constexpr uint16_t kMostDevices = 64;
    static constexpr uint32_t kMostPools = 4096;  // numbers of pools are smaller

    struct NewSegment {
        uint64_t address;
        Thing thing;  // kNone = free
    };

    Entry* entries_;       // numbers start at 1; entry 0 is the one with kNone
    Place* places_;        // twice as many as capacity_: at most half are in use
    uint64_t* pool_ends_;  // sequence number of the last end of each pool of the program, by number
    bool has_dead_;        // a pool has ended since dead entries were dropped
    bool frees_lost_;
    uint64_t next_sweep_;  // a full table looks for overlaps again from this sequence number on
    size_t capacity_;      // of entries_, a power of two
    size_t end_;           // entries from here on have never been used
    size_t used_;
    uint64_t free_;  // number of the first free entry below end_, 0 = none
    uint64_t lost_;
    uint64_t held_bytes_[kMostDevices];  // device memory of all entries, by device
    NewSegment new_segments_[kNewSegments];
    uint32_t new_segment_count_;
    uint32_t next_new_segment_;
};

}  // namespace fragtrace::preload
