// The ring: event slots and the data needed to read them, in memory that outlives the process.
//
// Many producers, one consumer (the owner of the session's flush lock). A producer claims a
// sequence number only when its slot is free, fills the slot and stores the number last. The
// consumer frees a slot only when its event is in the trace file. So every event whose record()
// returned is in the file or in the ring, however the process ends.
#pragma once

#include <fragtrace/format.h>

#include "system/sys.h"

#include <string.h>

namespace fragtrace::preload {

inline constexpr uint32_t kNodeCapacity = 1u << 20;
inline constexpr uint32_t kCodeCapacity_bytes = 8u << 20;
inline constexpr uint32_t kFactsCapacity_bytes = 1u << 20;

// An area of the ring that is filled from its beginning. If the ring's file is in memory, its
// blocks are allocated as the area fills. Otherwise a store to an unallocated block would raise
// SIGBUS when memory is exhausted.
struct GrowingArea {
    uint64_t offset;  // in the ring
    uint64_t capacity_bytes;
    uint64_t ready_bytes;    // bytes that may be written; all of the area if the ring does not grow
    uint64_t refused_at_ns;  // time when there was no room for more
};

class Ring {
  public:
    // Creates and maps a ring. If `directory` is not empty, only that one is tried. Otherwise:
    // memory-backed storage, $TMPDIR, /tmp and `fallback_directory`. The last resort is memory that
    // dies with the process; path() is then empty. It is also used if other storage than memory
    // does not answer within a second and a half. Returns false if there is no memory at all.
    // Without `named`, the file has no name before name_file(), if the file system supports that: a
    // process that is killed leaves nothing.
    bool create(const uint64_t session[2],
                uint32_t slot_count,
                const char* directory,
                const char* fallback_directory,
                bool named);
    // Gives the file its name. If that fails, the ring is memory that dies with the process.
    void name_file();

    // Removes the file's name. The mapping stays valid for threads that still use it.
    void remove_file();
    // For a forked child: drops the mapping and does not touch the parent's file.
    void abandon();

    // Claims the next sequence number. Returns 0 if the ring is full.
    uint64_t try_claim() {
        uint64_t head = load_relaxed(&header->head);
        do {
            // An outdated tail only makes the ring look fuller than it is.
            if (head - load_acquire(&header->tail) > last_slot) {
                return 0;
            }
        } while (!__atomic_compare_exchange_n(
            &header->head, &head, head + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
        return head + 1;
    }

    // With the flush lock: claims a number, and reserves after it one number for each event in the
    // ring and `more` numbers. Reserved numbers never get slots; the tail has to skip them.
    uint64_t try_claim_before(uint64_t more, uint64_t* set_aside) {
        uint64_t head = load_relaxed(&header->head);
        do {
            if (head - header->tail >= header->slot_count) {
                return 0;
            }
            *set_aside = head - header->tail + more;
        } while (!__atomic_compare_exchange_n(
            &header->head, &head, head + 1 + *set_aside, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
        return head + 1;
    }

    // Fills the claimed slot. Until the last store, the slot has the number of an earlier lap.
    // Fields are copied one by one: the caller has just written them, and a load wider than a
    // preceding store would wait for that store to complete.
    void publish(uint64_t sequence, const EventRecord& event, uint64_t time_ns, uint32_t thread) {
        EventRecord* slot = &slot_of(sequence);
        store_relaxed(&slot->time_ns, time_ns);
        store_relaxed(&slot->address, event.address);
        store_relaxed(&slot->size, event.size);
        store_relaxed(&slot->extra, event.extra);
        store_relaxed(&slot->stream, event.stream);
        store_relaxed(&slot->native_stack, event.native_stack);
        store_relaxed(&slot->python_stack, event.python_stack);
        store_relaxed(&slot->thread, thread);
        store_relaxed(&slot->duration_ns, event.duration_ns);
        store_relaxed(&slot->pool, event.pool);
        store_relaxed(&slot->device, event.device);
        store_relaxed(&slot->kind, event.kind);
        store_relaxed(&slot->flags, event.flags);
        store_release(&slot->sequence, sequence);
        // Since the last lap, the next slot has left this processor's caches. A prefetch now means
        // that it is there when it is needed.
        const char* next = reinterpret_cast<const char*>(&slot_of(sequence + 1));
        fetch_for_writing(next);
        fetch_for_writing(next + sizeof(EventRecord) - 1);
    }

    [[nodiscard]] bool is_published(uint64_t sequence) const {
        return load_acquire(&slot_of(sequence).sequence) == sequence;
    }

    [[nodiscard]] EventRecord& slot_of(uint64_t sequence) const {
        return slots[(sequence - 1) & last_slot];
    }

    // Returns whether the first `end_bytes` of an area may be written. Any thread; opens no file.
    [[nodiscard]] bool reaches(GrowingArea* area, uint64_t end_bytes) {
        return end_bytes <= load_acquire(&area->ready_bytes) || grow(area, end_bytes);
    }

    // Empty if there is no file, or if it has no name.
    [[nodiscard]] const char* path() const { return unnamed_ ? "" : path_; }

    RingHeader* header;
    EventRecord* slots;
    uint64_t last_slot;  // number of slots - 1
    StackNode* nodes;
    uint8_t* code;
    char* facts;
    GrowingArea node_room;
    GrowingArea code_room;
    GrowingArea facts_room;

  private:
    struct Making;

    static void* make(void* making);
    bool create_in_time(const uint64_t session[2],
                        const char* directory,
                        const char* fallback_directory,
                        bool named);
    bool create_file(const char* directory,
                     const uint64_t session[2],
                     bool memory_backed,
                     bool named);
    void keep_open(int fd);
    [[nodiscard]] bool is_open() const;
    void close_unnamed();
    void plan_areas(uint32_t slot_count);
    bool take_blocks(int fd, bool memory_backed);
    void fill_areas();
    bool grow(GrowingArea* area, uint64_t end_bytes);
    void lay_out(const uint64_t session[2], uint32_t slot_count);

    size_t size_bytes_;
    bool unnamed_;  // true: fd_ is open, and the file will get the name path_
    int fd_;
    uint64_t device_;  // of the file, to check that fd_ still refers to it
    uint64_t inode_;
    char path_[sizeof(TraceHeader::ring_path)];
};

}  // namespace fragtrace::preload
