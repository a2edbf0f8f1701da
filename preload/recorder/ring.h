// The ring: event slots and what is needed to read them, in memory that outlives the process.
//
// Many producers, one consumer (whoever holds the session's flush lock). A producer claims a
// sequence number only when its slot is free, fills the slot and stores the number last; the
// consumer frees a slot only once its event is in the trace file. So every event whose record()
// returned is in the file or in the ring, whatever becomes of the process.
#pragma once

#include <fragtrace/format.h>

#include "system/sys.h"

#include <string.h>

namespace fragtrace::preload {

inline constexpr uint32_t kNodeCapacity = 1u << 20;
inline constexpr uint32_t kCodeCapacity_bytes = 8u << 20;
inline constexpr uint32_t kFactsCapacity_bytes = 1u << 20;

// An area of the ring that is filled from its beginning. In storage that is memory the blocks under
// it are taken as it fills, since a store into one that was not taken raises SIGBUS where none is
// left.
struct GrowingArea {
    uint64_t offset;  // in the ring
    uint64_t capacity_bytes;
    uint64_t ready_bytes;    // may be written; all of it where the ring does not grow
    uint64_t refused_at_ns;  // when there was no room for more
};

class Ring {
  public:
    // Creates and maps a ring. Tries `directory` alone if it is not empty, else memory-backed
    // storage, $TMPDIR, /tmp and `fallback_directory`, at last memory that dies with the process
    // (path() is then empty). False when there is no memory at all. Without `named` the file has no
    // name before name_file(), where the file system can do that: a process that is killed leaves
    // nothing.
    bool create(const uint64_t session[2],
                uint32_t slot_count,
                const char* directory,
                const char* fallback_directory,
                bool named);
    // A file that cannot be named is as memory that dies with the process.
    void name_file();

    // Removes the name; the mapping stays usable for threads that are still in it.
    void remove_file();
    // For a forked child: gives the mapping up, leaves the parent's file alone.
    void abandon();

    // Claims the next sequence number, 0 when the ring is full.
    uint64_t try_claim() {
        uint64_t head = load_relaxed(&header->head);
        do {
            // An old tail only makes the ring look fuller than it is.
            if (head - load_acquire(&header->tail) > last_slot) {
                return 0;
            }
        } while (!__atomic_compare_exchange_n(
            &header->head, &head, head + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
        return head + 1;
    }

    // With the flush lock: claims a number and sets aside, behind it, one for each event that is
    // in the ring and `more` of them. These never get slots; the tail has to pass them.
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

    // Fills the claimed slot. Until the last store the slot carries the number of an earlier lap.
    // Field by field: the caller has just written them, and loads of more than was stored at once
    // would wait for the stores.
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
        // The next slot has left this processor's caches since the ring's last lap: the wait for
        // it is over by the time that it is needed.
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

    // Whether the first `end_bytes` of an area may be written. Any thread; no file is opened.
    [[nodiscard]] bool reaches(GrowingArea* area, uint64_t end_bytes) {
        return end_bytes <= load_acquire(&area->ready_bytes) || grow(area, end_bytes);
    }

    // Empty where there is no file, or none with a name.
    [[nodiscard]] const char* path() const { return unnamed_ ? "" : path_; }

    RingHeader* header;
    EventRecord* slots;
    uint64_t last_slot;  // their number less one
    StackNode* nodes;
    uint8_t* code;
    char* facts;
    GrowingArea node_room;
    GrowingArea code_room;
    GrowingArea facts_room;

  private:
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
    bool unnamed_;  // fd_ is open then, and the file will be path_
    int fd_;
    uint64_t device_;  // of the file, to tell whether fd_ still is it
    uint64_t inode_;
    char path_[sizeof(TraceHeader::ring_path)];
};

}  // namespace fragtrace::preload
