#include "live/live_table.h"

#include "system/sys.h"

#include <algorithm>
#include <string.h>
#include <sys/mman.h>

namespace fragtrace::preload {
namespace {

constexpr size_t kLeastCapacity = 2048;
constexpr size_t kMostCapacity = size_t{1} << 31;
constexpr size_t kCachedCapacity = 4096;  // 400 KiB

// Things with the same key get neighbouring places: the free of a block looks up two of them.
uint32_t hash_of(uint64_t key, uint8_t thing) {
    const uint64_t mixed = (key ^ (key >> 32)) * 0x9e3779b97f4a7c15u;
    return static_cast<uint32_t>(mixed >> 32) + thing;
}

}  // namespace

// ---- the table ----------------------------------------------------------------------------------

bool LiveTable::create() {
    memset(static_cast<void*>(this), 0, sizeof *this);
    entries_ = static_cast<Entry*>(map_private(kLeastCapacity * sizeof(Entry)));
    places_ = static_cast<Place*>(map_private(2 * kLeastCapacity * sizeof(Place)));
    pool_ends_ = static_cast<uint64_t*>(map_private(kMostPools * sizeof(uint64_t)));
    capacity_ = kLeastCapacity;
    end_ = 1;
    if (entries_ == nullptr || places_ == nullptr || pool_ends_ == nullptr) {
        abandon();
        return false;
    }
    return true;
}

void LiveTable::abandon() {
    unmap(entries_, capacity_ * sizeof(Entry));
    unmap(places_, 2 * capacity_ * sizeof(Place));
    unmap(pool_ends_, kMostPools * sizeof(uint64_t));
    entries_ = nullptr;
    places_ = nullptr;
    pool_ends_ = nullptr;
    capacity_ = end_ = used_ = 0;
}

// Returns the place of an entry's number, or the free place where the number belongs.
LiveTable::Place* LiveTable::place_of(Thing thing, uint64_t key) const {
    const uint32_t hash = hash_of(key, static_cast<uint8_t>(thing));
    for (size_t at = hash;; ++at) {
        Place* place = &places_[at & (2 * capacity_ - 1)];
        if (place->entry == 0) {
            return place;
        }
        if (place->hash == hash) {
            const Entry& entry = entries_[place->entry];
            if (entry.key == key && entry.thing == thing) {
                return place;
            }
        }
    }
}

LiveTable::Entry* LiveTable::find(Thing thing, uint64_t key) const {
    Entry* entry = &entries_[place_of(thing, key)->entry];
    return is_dead(*entry) ? &entries_[0] : entry;
}

void LiveTable::drop_dead() {
    for (size_t i = 1; i < end_; ++i) {
        if (is_dead(entries_[i])) {
            remove(place_of(entries_[i].thing, entries_[i].key));
        }
    }
    has_dead_ = false;
}

namespace {

// Memory that no other entry of its kind shares.
struct OwnMemory {
    uint64_t address;
    uint32_t entry;
    Thing thing;
};

// Returns 0 for entries that are found by a handle, and for blocks of the program's pools: those
// may lie inside each other.
uint64_t own_bytes(Thing thing, const EventRecord& event) {
    switch (thing) {
        case Thing::kDevice:
        case Thing::kHost:
        case Thing::kMapping:
        case Thing::kReservation:
            return event.size;
        case Thing::kBlock:
            return event.extra;
        default:
            return 0;
    }
}

}  // namespace

void LiveTable::drop_overlapped() {
    const size_t size_bytes = used_ * sizeof(OwnMemory);
    auto* const all = frees_lost_ ? static_cast<OwnMemory*>(map_private(size_bytes)) : nullptr;
    if (all == nullptr) {
        return;
    }
    OwnMemory* end = all;
    for (size_t i = 1; i < end_; ++i) {
        const Entry& entry = entries_[i];
        if (own_bytes(entry.thing, entry.event) != 0) {
            *end++ = {entry.event.address, static_cast<uint32_t>(i), entry.thing};
        }
    }
    std::sort(all, end, [](const OwnMemory& a, const OwnMemory& b) {
        return a.thing != b.thing ? a.thing < b.thing : a.address < b.address;
    });
    const OwnMemory* kept = all;
    for (const OwnMemory* next = all + 1; next < end; ++next) {
        const Entry& before = entries_[kept->entry];
        const Entry& after = entries_[next->entry];
        if (kept->thing != next->thing ||
            next->address - kept->address >= own_bytes(before.thing, before.event)) {
            kept = next;
            continue;
        }
        const bool after_is_later = after.event.sequence > before.event.sequence;
        const Entry& dead = after_is_later ? before : after;
        remove(place_of(dead.thing, dead.key));
        kept = after_is_later ? next : kept;
    }
    unmap(all, size_bytes);
    forget_orphans();
}

// Makes room in a full table. Dropping entries is enough if that gives much room: otherwise the
// next entries would look at the whole table again.
bool LiveTable::make_room(uint64_t sequence) {
    if (has_dead_) {
        drop_dead();
    }
    if (sequence >= next_sweep_) {
        next_sweep_ = sequence + capacity_;
        drop_overlapped();
    }
    return used_ < capacity_ / 4 * 3 || grow() || free_ != 0;
}

// Doubles the number of entries; entries keep their numbers.
bool LiveTable::grow() {
    if (capacity_ == kMostCapacity) {
        return false;
    }
    const size_t places = 2 * capacity_;
    auto* memory = static_cast<Place*>(map_private(2 * places * sizeof(Place)));
    void* entries = memory == nullptr ? MAP_FAILED
                                      : mremap(entries_,
                                               capacity_ * sizeof(Entry),
                                               2 * capacity_ * sizeof(Entry),
                                               MREMAP_MAYMOVE);
    if (entries == MAP_FAILED) {
        unmap(memory, 2 * places * sizeof(Place));
        return false;
    }
    for (size_t i = 0; i < places; ++i) {
        if (places_[i].entry != 0) {
            size_t at = places_[i].hash;
            while (memory[at & (2 * places - 1)].entry != 0) {
                ++at;
            }
            memory[at & (2 * places - 1)] = places_[i];
        }
    }
    unmap(places_, places * sizeof(Place));
    entries_ = static_cast<Entry*>(entries);
    places_ = memory;
    capacity_ *= 2;
    return true;
}

// Copies everything into a table of at least a quarter of the size, if there is memory for it.
void LiveTable::shrink() {
    LiveTable smaller;
    if (!smaller.create()) {
        return;
    }
    while (smaller.capacity_ < capacity_ / 4) {
        if (!smaller.grow()) {
            smaller.abandon();
            return;
        }
    }
    for (size_t i = 1; i < end_; ++i) {
        if (entries_[i].thing != Thing::kNone && !is_dead(entries_[i])) {
            smaller.put(entries_[i].thing, entries_[i].key, entries_[i].event)->count =
                entries_[i].count;
        }
    }
    unmap(entries_, capacity_ * sizeof(Entry));
    unmap(places_, 2 * capacity_ * sizeof(Place));
    unmap(smaller.pool_ends_, kMostPools * sizeof(uint64_t));
    entries_ = smaller.entries_;
    places_ = smaller.places_;
    capacity_ = smaller.capacity_;
    end_ = smaller.end_;
    used_ = smaller.used_;
    free_ = smaller.free_;
    has_dead_ = false;
}

LiveTable::Entry* LiveTable::put(Thing thing, uint64_t key, const EventRecord& event) {
    Place* place = place_of(thing, key);
    if (place->entry == 0) {
        if (free_ == 0 && end_ == capacity_) {
            if (!make_room(event.sequence)) {
                ++lost_;
                return nullptr;
            }
            place = place_of(thing, key);
        }
        const uint64_t number = free_ != 0 ? free_ : end_++;
        free_ = entries_[number].key;
        *place = {hash_of(key, static_cast<uint8_t>(thing)), static_cast<uint32_t>(number)};
        ++used_;
    }
    Entry* entry = &entries_[place->entry];
    count_held(*entry, false);
    *entry = Entry{key, 0, thing, event};
    count_held(*entry, true);
    return entry;
}

void LiveTable::erase(Thing thing, uint64_t key) {
    Place* place = place_of(thing, key);
    if (place->entry == 0) {
        return;
    }
    remove(place);
    if (capacity_ > kLeastCapacity && used_ < capacity_ / 8) {
        shrink();
    }
}

// Closes the gap: moves later numbers into it that could not be found any more because of it.
void LiveTable::remove(Place* gap) {
    Entry& entry = entries_[gap->entry];
    count_held(entry, false);
    entry.thing = Thing::kNone;
    entry.key = free_;
    free_ = gap->entry;
    --used_;
    const size_t mask = 2 * capacity_ - 1;
    auto hole = static_cast<size_t>(gap - places_);
    for (size_t at = (hole + 1) & mask; places_[at].entry != 0; at = (at + 1) & mask) {
        if (((at - places_[at].hash) & mask) >= ((at - hole) & mask)) {
            places_[hole] = places_[at];
            hole = at;
        }
    }
    places_[hole].entry = 0;
}

// Counts the live device memory of the process. Physical memory is assumed to end with its last
// handle, because the framework's allocator unmaps it before.
void LiveTable::count_held(const Entry& entry, bool begins) {
    uint64_t bytes = 0;
    if (entry.thing == Thing::kDevice) {
        bytes = entry.event.kind == EventKind::kManagedAlloc ? 0 : entry.event.size;
    } else if (entry.thing == Thing::kPhysical || entry.thing == Thing::kArray) {
        bytes = entry.event.size == kUnknown64 ? 0 : entry.event.size;
    } else if (entry.thing == Thing::kGraphMemory) {
        bytes = entry.event.extra == kUnknown64 ? 0 : entry.event.extra;
    }
    if (entry.event.device < kMostDevices) {
        held_bytes_[entry.event.device] += begins ? bytes : 0 - bytes;
    }
}

uint64_t LiveTable::held_bytes(uint16_t device) const {
    return device < kMostDevices ? held_bytes_[device] : 0;
}

// Returns what the driver would report now if only this process had changed anything since the
// report. While a report is in the table, its `address` is the live device memory at the time of
// the report.
EventRecord LiveTable::free_memory_now(const EventRecord& report) const {
    EventRecord now = report;
    const uint64_t available = report.size + report.address;
    const uint64_t held = held_bytes(report.device);
    now.size = available > held ? available - held : 0;
    now.address = 0;
    now.flags |= kFlagByPool;  // the program did not request this report
    return now;
}

void LiveTable::forget(Keep* keep, const EventRecord& event) {
    for (size_t i = 1; i < end_; ++i) {
        if (entries_[i].thing != Thing::kNone && !keep(entries_[i], event)) {
            remove(place_of(entries_[i].thing, entries_[i].key));
        }
    }
}

void LiveTable::fetch(const EventRecord& sooner, const EventRecord& later) const {
    if (capacity_ <= kCachedCapacity) {
        return;
    }
    const auto home = [this](uint32_t hash) { return &places_[hash & (2 * capacity_ - 1)]; };
    const uint32_t hash = hash_of(sooner.address, static_cast<uint8_t>(Thing::kBlock));
    const Place* place = home(hash);
    if (place->hash == hash) {
        __builtin_prefetch(&entries_[place->entry], 1);
        __builtin_prefetch(&entries_[place->entry].event.thread, 1);  // in the next cache line
    }
    __builtin_prefetch(home(hash_of(later.address, static_cast<uint8_t>(Thing::kBlock))), 1);
}

// For things that can begin several times and end only with as many ends.
void LiveTable::count(Thing thing, uint64_t key, const EventRecord& event, bool up) {
    Entry* entry = find(thing, key);
    if (up) {
        const bool known = entry->thing != Thing::kNone;
        entry = known ? entry : put(thing, key, event);
        if (entry != nullptr) {
            ++entry->count;
        }
    } else if (entry->thing != Thing::kNone && --entry->count == 0) {
        erase(thing, key);
    }
}

uint64_t LiveTable::event_count() const {
    uint64_t count = 0;
    for (size_t i = 1; i < end_; ++i) {
        const Entry& entry = entries_[i];
        if (is_dead(entry)) {
            continue;
        }
        if (entry.thing == Thing::kPhysical || entry.thing == Thing::kImport) {
            count += 1 + entry.count;
        } else if (entry.thing == Thing::kBlock || entry.thing == Thing::kProgramBlock) {
            count += entry.count != 0 ? 2 : 1;
        } else if (entry.thing == Thing::kPoolUse) {
            count += entry.count;
        } else if (entry.thing != Thing::kNone && entry.thing != Thing::kRangeDepth) {
            ++count;
        }
    }
    return count;
}

void LiveTable::copy_to(EventRecord* events) const {
    EventRecord* to = events;
    for (size_t i = 1; i < end_; ++i) {
        const Entry& entry = entries_[i];
        if (is_dead(entry)) {
            continue;
        }
        switch (entry.thing) {
            case Thing::kNone:
            case Thing::kRangeDepth:
                break;
            case Thing::kPhysical:
            case Thing::kImport:
                *to++ = entry.event;
                for (uint32_t retain = 0; retain < entry.count; ++retain, ++to) {
                    *to = entry.event;
                    to->kind = EventKind::kPhysicalRetain;
                    to->size = to->extra = 0;
                }
                break;
            case Thing::kBlock:
            case Thing::kProgramBlock:
                *to++ = entry.event;
                if (entry.count != 0) {
                    *to = entry.event;
                    to->kind = EventKind::kBlockLabel;
                    to->size = entry.count;
                    to->extra = 0;
                    to->stream = kStreamUnknown;
                    to->native_stack = to->python_stack = 0;
                    to->pool = entry.thing == Thing::kProgramBlock ? entry.event.pool : 0;
                    to->flags = 0;
                    ++to;
                }
                break;
            case Thing::kPoolUse:
                for (uint32_t use = 0; use < entry.count; ++use) {
                    *to++ = entry.event;
                }
                break;
            case Thing::kMemoryInfo:
                *to++ = free_memory_now(entry.event);
                break;
            default:
                *to++ = entry.event;
                break;
        }
    }
    std::sort(events, to, [](const EventRecord& a, const EventRecord& b) {
        const bool a_reports = a.kind == EventKind::kMemoryInfo;
        const bool b_reports = b.kind == EventKind::kMemoryInfo;
        if (a_reports != b_reports) {
            return b_reports;
        }
        // The event that creates a retained handle, or allocates a labelled block, comes first.
        const auto follows = [](EventKind kind) {
            return kind == EventKind::kPhysicalRetain || kind == EventKind::kBlockLabel;
        };
        return a.sequence != b.sequence ? a.sequence < b.sequence
                                        : follows(a.kind) < follows(b.kind);
    });
}

}  // namespace fragtrace::preload
