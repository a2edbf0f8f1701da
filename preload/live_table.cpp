#include "live_table.h"

#include "sys.h"

#include <algorithm>
#include <string.h>

namespace fragtrace::preload {
namespace {

constexpr size_t kLeastCapacity = 4096;
constexpr uint32_t kMostRangeDepth = 255;
constexpr uint64_t kMostPoolAttributes = 16;

uint64_t mixed(uint64_t value) {
    value = (value ^ (value >> 32)) * 0x9e3779b97f4a7c15u;
    return value ^ (value >> 29);
}

uint64_t attribute_key(const EventRecord& event, uint64_t attribute) {
    return event.address * kMostPoolAttributes + attribute % kMostPoolAttributes;
}

uint64_t range_key(uint32_t thread, uint32_t depth) {
    return uint64_t{thread} << 8 | depth;
}

}  // namespace

// ---- the table ----------------------------------------------------------------------------------

bool LiveTable::create() {
    memset(static_cast<void*>(this), 0, sizeof *this);
    return rebuild(kLeastCapacity, [](const Entry&) { return true; });
}

void LiveTable::abandon() {
    unmap(entries_, capacity_ * sizeof(Entry));
    entries_ = nullptr;
    capacity_ = used_ = 0;
}

// The entry, or the free one where it belongs.
LiveTable::Entry* LiveTable::find(Thing thing, uint64_t key) const {
    for (uint64_t at = mixed(key + static_cast<uint64_t>(thing));; ++at) {
        Entry* entry = &entries_[at & (capacity_ - 1)];
        if (entry->thing == Thing::kNone || (entry->thing == thing && entry->key == key)) {
            return entry;
        }
    }
}

// Moves what is kept into a table of another size, or of the same.
template <typename Keep>
bool LiveTable::rebuild(size_t capacity, Keep keep) {
    auto* memory = static_cast<Entry*>(map_private(capacity * sizeof(Entry)));
    if (memory == nullptr) {
        return false;
    }
    Entry* old = entries_;
    const size_t old_capacity = capacity_;
    entries_ = memory;
    capacity_ = capacity;
    used_ = 0;
    for (size_t i = 0; i < old_capacity; ++i) {
        if (old[i].thing != Thing::kNone && keep(old[i])) {
            *find(old[i].thing, old[i].key) = old[i];
            ++used_;
        }
    }
    unmap(old, old_capacity * sizeof(Entry));
    return true;
}

LiveTable::Entry* LiveTable::put(Thing thing, uint64_t key, const EventRecord& event) {
    const auto all = [](const Entry&) { return true; };
    if (used_ >= capacity_ / 2 && !rebuild(capacity_ * 2, all) && used_ >= capacity_ / 8 * 7) {
        ++lost_;
        return nullptr;
    }
    Entry* entry = find(thing, key);
    used_ += entry->thing == Thing::kNone ? 1 : 0;
    *entry = Entry{event, key, 0, thing};
    return entry;
}

// Entries behind the gap that would not be found any more move up into it.
void LiveTable::erase(Thing thing, uint64_t key) {
    Entry* gap = find(thing, key);
    if (gap->thing == Thing::kNone) {
        return;
    }
    const size_t mask = capacity_ - 1;
    auto hole = static_cast<size_t>(gap - entries_);
    for (size_t at = (hole + 1) & mask; entries_[at].thing != Thing::kNone; at = (at + 1) & mask) {
        const Entry& entry = entries_[at];
        const size_t home = mixed(entry.key + static_cast<uint64_t>(entry.thing)) & mask;
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            entries_[hole] = entry;
            hole = at;
        }
    }
    entries_[hole].thing = Thing::kNone;
    --used_;
    if (capacity_ > kLeastCapacity && used_ < capacity_ / 16) {
        rebuild(capacity_ / 4, [](const Entry&) { return true; });
    }
}

// Things that are begun several times and end with the last of as many ends.
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
    for (size_t i = 0; i < capacity_; ++i) {
        const Entry& entry = entries_[i];
        if (entry.thing == Thing::kPhysical) {
            count += 1 + entry.count;
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
    for (size_t i = 0; i < capacity_; ++i) {
        const Entry& entry = entries_[i];
        switch (entry.thing) {
            case Thing::kNone:
            case Thing::kRangeDepth:
                break;
            case Thing::kPhysical:
                *to++ = entry.event;
                for (uint32_t retain = 0; retain < entry.count; ++retain, ++to) {
                    *to = entry.event;
                    to->kind = EventKind::kPhysicalRetain;
                    to->size = 0;
                }
                break;
            case Thing::kPoolUse:
                for (uint32_t use = 0; use < entry.count; ++use) {
                    *to++ = entry.event;
                }
                break;
            default:
                *to++ = entry.event;
                break;
        }
    }
    std::sort(events, to, [](const EventRecord& a, const EventRecord& b) {
        // A retained handle's own event comes first.
        return a.sequence != b.sequence ? a.sequence < b.sequence : a.kind < b.kind;
    });
}

// ---- what events do to it -----------------------------------------------------------------------

void LiveTable::apply(const EventRecord& event) {
    switch (event.kind) {
        case EventKind::kDeviceAlloc:
        case EventKind::kManagedAlloc:
        case EventKind::kAsyncAlloc:
            put(Thing::kDevice, event.address, event);
            remember_segment(Thing::kDevice, event);
            break;
        case EventKind::kDeviceFree:
        case EventKind::kAsyncFree:
            erase(Thing::kDevice, event.address);
            break;
        case EventKind::kAddressReserve:
            put(Thing::kReservation, event.address, event);
            remember_segment(Thing::kReservation, event);
            break;
        case EventKind::kAddressFree:
            erase(Thing::kReservation, event.address);
            break;
        case EventKind::kPhysicalCreate:
            put(Thing::kPhysical, event.address, event);
            break;
        case EventKind::kPhysicalRetain: {
            Entry* entry = find(Thing::kPhysical, event.address);
            entry->count += entry->thing == Thing::kNone ? 0 : 1;
            break;
        }
        case EventKind::kPhysicalRelease: {
            Entry* entry = find(Thing::kPhysical, event.address);
            if (entry->thing != Thing::kNone && entry->count != 0) {
                --entry->count;
            } else {
                erase(Thing::kPhysical, event.address);
            }
            break;
        }
        case EventKind::kMap:
            put(Thing::kMapping, event.address, event);
            break;
        case EventKind::kUnmap:
            unmap_range(event);
            break;
        case EventKind::kDeviceReset:
            forget_device(event.device);
            break;
        case EventKind::kMemoryInfo:
            put(Thing::kMemoryInfo, event.device, event);
            break;
        case EventKind::kHostAlloc:
            put(Thing::kHost, event.address, event);
            break;
        case EventKind::kHostFree:
            erase(Thing::kHost, event.address);
            break;
        case EventKind::kHostRegister:
            put(Thing::kRegistered, event.address, event);
            break;
        case EventKind::kHostUnregister:
            erase(Thing::kRegistered, event.address);
            break;
        case EventKind::kArrayAlloc:
            put(Thing::kArray, event.address, event);
            break;
        case EventKind::kArrayFree:
            erase(Thing::kArray, event.address);
            break;
        case EventKind::kPoolCreate:
            put(Thing::kPool, event.address, event);
            break;
        case EventKind::kPoolDestroy:
            erase(Thing::kPool, event.address);
            erase(Thing::kPoolInfo, event.address);
            for (uint64_t i = 0; i < kMostPoolAttributes; ++i) {
                erase(Thing::kPoolAttribute, attribute_key(event, i));
            }
            break;
        case EventKind::kPoolAttribute:
            put(Thing::kPoolAttribute, attribute_key(event, event.extra), event);
            break;
        case EventKind::kPoolInfo:
            put(Thing::kPoolInfo, event.address, event);
            break;
        case EventKind::kPoolSelect:
            put(Thing::kPoolSelect, event.device, event);
            break;
        case EventKind::kImport:
            put(Thing::kImport, event.address, event);
            break;
        case EventKind::kImportEnd:
            erase(Thing::kImport, event.address);
            break;
        case EventKind::kBlockAlloc:
            block_alloc(event);
            break;
        case EventKind::kBlockFree:
            block_free(event);
            break;
        case EventKind::kPendingEvent:
            pending_event(event);
            break;
        case EventKind::kEventComplete:
            event_complete(event);
            break;
        case EventKind::kMemoryFraction:
            put(Thing::kMemoryFraction, event.device, event);
            break;
        case EventKind::kSettings:
            put(Thing::kSettings, 0, event);
            break;
        case EventKind::kPoolUse:
            count(Thing::kPoolUse, event.pool, event, event.size != 0);
            break;
        case EventKind::kPoolRewind:
            forget_pool_blocks(event.pool);
            break;
        case EventKind::kGraphAlloc:
            put(Thing::kGraph, event.address, event);
            break;
        case EventKind::kGraphFree:
            erase(Thing::kGraph, event.address);
            break;
        case EventKind::kGraphMemory:
            put(Thing::kGraphMemory, event.device, event);
            break;
        case EventKind::kContextCreate:
            put(Thing::kContext, event.address, event);
            break;
        case EventKind::kContextDestroy:
            erase(Thing::kContext, event.address);
            break;
        case EventKind::kModuleLoad:
            put(Thing::kModule, event.address, event);
            break;
        case EventKind::kModuleUnload:
            erase(Thing::kModule, event.address);
            break;
        case EventKind::kRangeBegin:
        case EventKind::kRangeEnd:
            range(event);
            break;
        default:
            break;
    }
}

// One call may undo several mappings that follow each other.
void LiveTable::unmap_range(const EventRecord& event) {
    const uint64_t end = event.address + event.size;
    for (uint64_t at = event.address; at <= end;) {
        const Entry* entry = find(Thing::kMapping, at);
        if (entry->thing == Thing::kNone || entry->event.size == 0) {
            break;
        }
        const uint64_t next = at + entry->event.size;
        erase(Thing::kMapping, at);
        at = next;
        if (at == end) {
            break;
        }
    }
}

void LiveTable::block_alloc(const EventRecord& event) {
    erase(Thing::kPendingFree, event.address);  // its last completion was not seen
    put(Thing::kBlock, event.address, event);
    give_segment_its_stream(event);
}

void LiveTable::block_free(const EventRecord& event) {
    if ((event.flags & kFlagPending) == 0) {
        erase(Thing::kBlock, event.address);
    } else if (find(Thing::kBlock, event.address)->thing != Thing::kNone) {
        put(Thing::kPendingFree, event.address, event);
    }
}

void LiveTable::pending_event(const EventRecord& event) {
    if (find(Thing::kPendingFree, event.address)->thing != Thing::kNone &&
        put(Thing::kPendingEvent, event.extra, event) != nullptr) {
        ++find(Thing::kPendingFree, event.address)->count;
    }
}

void LiveTable::event_complete(const EventRecord& event) {
    const Entry* waiting = find(Thing::kPendingEvent, event.extra);
    if (waiting->thing == Thing::kNone) {
        return;
    }
    const uint64_t block = waiting->event.address;
    erase(Thing::kPendingEvent, event.extra);
    Entry* freed = find(Thing::kPendingFree, block);
    if (freed->thing != Thing::kNone && --freed->count == 0) {
        erase(Thing::kPendingFree, block);
        erase(Thing::kBlock, block);
    }
}

// Ranges with an id end by it; the others are nested in their thread.
void LiveTable::range(const EventRecord& event) {
    const bool begins = event.kind == EventKind::kRangeBegin;
    if (event.address != 0) {
        if (begins) {
            put(Thing::kRange, event.address, event);
        } else {
            erase(Thing::kRange, event.address);
        }
        return;
    }
    const Entry* depth = find(Thing::kRangeDepth, event.thread);
    const uint32_t open = depth->thing == Thing::kNone ? 0 : depth->count;
    if (begins && open < kMostRangeDepth) {
        count(Thing::kRangeDepth, event.thread, event, true);
        put(Thing::kRangeOfThread, range_key(event.thread, open), event);
    } else if (!begins && open != 0) {
        count(Thing::kRangeDepth, event.thread, event, false);
        erase(Thing::kRangeOfThread, range_key(event.thread, open - 1));
    }
}

void LiveTable::forget_device(uint16_t device) {
    rebuild(capacity_, [device](const Entry& entry) {
        switch (entry.thing) {
            case Thing::kDevice:
            case Thing::kArray:
            case Thing::kBlock:
            case Thing::kPendingFree:
            case Thing::kPendingEvent:
            case Thing::kGraph:
            case Thing::kGraphMemory:
            case Thing::kModule:
                return entry.event.device != device;
            default:
                return true;
        }
    });
}

void LiveTable::forget_pool_blocks(uint32_t pool) {
    rebuild(capacity_, [pool](const Entry& entry) {
        return entry.event.pool != pool ||
               (entry.thing != Thing::kBlock && entry.thing != Thing::kPendingFree);
    });
}

// ---- segments -----------------------------------------------------------------------------------

void LiveTable::remember_segment(Thing thing, const EventRecord& event) {
    if ((event.flags & kFlagFromAllocator) != 0 && event.stream == kStreamUnknown) {
        new_segments_[next_new_segment_ % kNewSegments] = {event.address, thing};
        ++next_new_segment_;
        ++new_segment_count_;
    }
}

void LiveTable::give_segment_its_stream(const EventRecord& block) {
    if (new_segment_count_ == 0 || block.stream == kStreamUnknown) [[likely]] {
        return;
    }
    new_segment_count_ = 0;
    for (NewSegment& segment : new_segments_) {
        if (segment.thing == Thing::kNone) {
            continue;
        }
        Entry* entry = find(segment.thing, segment.address);
        if (entry->thing == Thing::kNone) {
            segment.thing = Thing::kNone;
        } else if (block.address - segment.address < entry->event.size) {
            entry->event.stream = block.stream;
            entry->event.pool = block.pool;
            segment.thing = Thing::kNone;
        } else {
            ++new_segment_count_;
        }
    }
}

}  // namespace fragtrace::preload
