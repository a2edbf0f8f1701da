// The effect of each kind of event on the live table.
#include "live/live_table.h"
#include "system/losses.h"

namespace fragtrace::preload {
namespace {

constexpr uint32_t kMostRangeDepth = 255;
constexpr uint64_t kMostPoolAttributes = 16;

// The recorder needs nothing else about the kinds. Without the table of their names, the loader has
// 830 addresses less to correct in every process.
struct Effects {
    EventEffect of[256]{};

    constexpr Effects() {
        for (size_t kind = 0; kind < 256; ++kind) {
            of[kind] = kEventKinds.kinds[kind].effect;
        }
    }
};

constexpr Effects kEffects;

uint64_t attribute_key(const EventRecord& event, uint64_t attribute) {
    return event.address * kMostPoolAttributes + attribute % kMostPoolAttributes;
}

// Pools of the program may lie inside each other. Addresses have less than 52 bits, and pools have
// fewer than 4,096 numbers.
uint64_t program_block_key(const EventRecord& event) {
    return event.address << 12 | (event.pool & 0xfff);
}

uint64_t range_key(uint32_t thread, uint32_t depth) {
    return uint64_t{thread} << 8 | depth;
}

}  // namespace

void LiveTable::apply(const EventRecord& event) {
    switch (event.kind) {
        case EventKind::kPhysicalCreate:
            put(Thing::kPhysical, event.address, event);
            break;
        case EventKind::kPhysicalRetain: {
            Entry* entry = find_physical(event.address);
            entry->count += entry->thing == Thing::kNone ? 0 : 1;
            break;
        }
        case EventKind::kPhysicalRelease: {
            Entry* entry = find_physical(event.address);
            if (entry->thing != Thing::kNone && entry->count != 0) {
                --entry->count;
            } else {
                erase(entry->thing, event.address);
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
            forget_device(event);
            break;
        case EventKind::kMemoryInfo:
            memory_info(event);
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
        case EventKind::kBlockAlloc:
            block_alloc(event);
            break;
        case EventKind::kBlockFree:
            block_free(event);
            break;
        case EventKind::kProgramBlockAlloc:
        case EventKind::kProgramBlockFree:
        case EventKind::kProgramPoolEnd:
            program_pool(event);
            break;
        case EventKind::kBlockLabel:
            block_label(event);
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
            forget_pool_blocks(event);
            break;
        case EventKind::kGraphMemory:
            put(Thing::kGraphMemory, event.device, event);
            break;
        case EventKind::kRangeBegin:
        case EventKind::kRangeEnd:
            range(event);
            break;
        case EventKind::kRecordingStopped:
            forget_ranges(event);
            break;
        default:
            begin_or_end(event);
            break;
    }
}

void LiveTable::begin_or_end(const EventRecord& event) {
    const EventEffect effect = kEffects.of[static_cast<uint8_t>(event.kind)];
    if (effect.begins != Thing::kNone) {
        put(effect.begins, event.address, event);
        if (effect.begins == Thing::kDevice || effect.begins == Thing::kReservation) {
            remember_segment(effect.begins, event);
        }
        return;
    }
    if (effect.ends != Thing::kNone) {
        erase(effect.ends, event.address);
    }
    if (event.kind == EventKind::kPoolDestroy) {
        erase(Thing::kPoolInfo, event.address);
        for (uint64_t i = 0; i < kMostPoolAttributes; ++i) {
            erase(Thing::kPoolAttribute, attribute_key(event, i));
        }
    }
    // Allocations do not name their context, so they end with the last context of the device.
    if (event.kind == EventKind::kContextDestroy && !has_context(event.device)) {
        forget_device(event);
    }
}

// One call may undo several mappings. These are adjacent unless some were not recorded.
void LiveTable::unmap_range(const EventRecord& event) {
    uint64_t at = event.address;
    const uint64_t end = event.address + event.size;
    do {
        const Entry* entry = find(Thing::kMapping, at);
        if (entry->thing == Thing::kNone || entry->event.size == 0) {
            break;
        }
        const uint64_t next = at + entry->event.size;
        erase(Thing::kMapping, at);
        at = next;
    } while (at < end);
    if (at < end) {
        forget(
            [](const Entry& entry, const EventRecord& unmap) {
                return entry.thing != Thing::kMapping ||
                       entry.event.address - unmap.address >= unmap.size;
            },
            event);
    }
}

// Imported memory is retained and released like memory of the process.
LiveTable::Entry* LiveTable::find_physical(uint64_t handle) const {
    Entry* entry = find(Thing::kPhysical, handle);
    return entry->thing != Thing::kNone ? entry : find(Thing::kImport, handle);
}

void LiveTable::block_alloc(const EventRecord& event) {
    forget_pending(event.address);  // the event that completed its free was not seen
    put(Thing::kBlock, event.address, event);
    give_segment_its_stream(event);
}

void LiveTable::block_free(const EventRecord& event) {
    forget_pending(event.address);
    if ((event.flags & kFlagPending) == 0) {
        erase(Thing::kBlock, event.address);
    } else if (find(Thing::kBlock, event.address)->thing != Thing::kNone) {
        put(Thing::kPendingFree, event.address, event);
    }
}

void LiveTable::block_label(const EventRecord& event) {
    Entry* block = event.pool == 0 ? find(Thing::kBlock, event.address)
                                   : find(Thing::kProgramBlock, program_block_key(event));
    if (block->thing != Thing::kNone) {
        block->count = static_cast<uint32_t>(event.size);
    }
}

void LiveTable::program_pool(const EventRecord& event) {
    if (event.kind == EventKind::kProgramBlockAlloc) {
        put(Thing::kProgramBlock, program_block_key(event), event);
    } else if (event.kind == EventKind::kProgramBlockFree) {
        erase(Thing::kProgramBlock, program_block_key(event));
    } else {
        pool_ends_[event.pool % kMostPools] = event.sequence;
        has_dead_ = true;
    }
}

void LiveTable::pending_event(const EventRecord& event) {
    event_complete(event);  // a handle that is reused must have completed, although that was not
                            // seen
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

void LiveTable::forget_pending(uint64_t block) {
    const Entry* freed = find(Thing::kPendingFree, block);
    if (freed->thing != Thing::kNone) {
        const uint32_t events = freed->count;
        erase(Thing::kPendingFree, block);
        if (events != 0) {
            forget_orphans();
        }
    }
}

// Removes pending frees without a block, then pending events without a pending free.
void LiveTable::forget_orphans() {
    forget_without(Thing::kPendingFree, Thing::kBlock);
    forget_without(Thing::kPendingEvent, Thing::kPendingFree);
}

void LiveTable::forget_without(Thing thing, Thing needed) {
    for (size_t i = 1; i < end_; ++i) {
        const Entry& entry = entries_[i];
        if (entry.thing == thing && find(needed, entry.event.address)->thing == Thing::kNone) {
            remove(place_of(thing, entry.key));
        }
    }
}

// Ranges with an id end by that id; the others are nested in their thread.
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
    if (!begins) {
        end_range_of_thread(event, open);
    } else if (open < kMostRangeDepth) {
        count(Thing::kRangeDepth, event.thread, event, true);
        put(Thing::kRangeOfThread, range_key(event.thread, open), event);
    }
}

// Ends the innermost range of this kind and text; ranges inside it stay open.
void LiveTable::end_range_of_thread(const EventRecord& event, uint32_t open) {
    uint32_t at = open;
    while (at != 0) {
        const Entry* range = find(Thing::kRangeOfThread, range_key(event.thread, at - 1));
        if (range->event.size == event.size && range->event.extra == event.extra) {
            break;
        }
        --at;
    }
    if (at == 0) {
        return;
    }
    for (; at < open; ++at) {
        find(Thing::kRangeOfThread, range_key(event.thread, at - 1))->event =
            find(Thing::kRangeOfThread, range_key(event.thread, at))->event;
    }
    erase(Thing::kRangeOfThread, range_key(event.thread, open - 1));
    count(Thing::kRangeDepth, event.thread, event, false);
}

bool LiveTable::has_context(uint16_t device) const {
    for (size_t i = 1; i < end_; ++i) {
        if (entries_[i].thing == Thing::kContext && entries_[i].event.device == device) {
            return true;
        }
    }
    return false;
}

// Removes all live allocations of the device; its settings stay.
void LiveTable::forget_device(const EventRecord& event) {
    forget(
        [](const Entry& entry, const EventRecord& reset) {
            switch (entry.thing) {
                case Thing::kPool:
                case Thing::kPoolAttribute:
                case Thing::kPoolSelect:
                case Thing::kPoolInfo:
                case Thing::kPoolUse:
                case Thing::kMemoryInfo:
                case Thing::kMemoryFraction:
                case Thing::kSettings:
                case Thing::kRange:
                case Thing::kRangeDepth:
                case Thing::kRangeOfThread:
                case Thing::kProgramBlock:  // until its pool frees it
                    return true;
                default:
                    return entry.event.device != reset.device;
            }
        },
        event);
    forget_orphans();
}

void LiveTable::forget_pool_blocks(const EventRecord& event) {
    forget(
        [](const Entry& entry, const EventRecord& rewind) {
            return entry.event.pool != rewind.pool ||
                   (rewind.device != kDeviceUnknown && entry.event.device != rewind.device) ||
                   (entry.thing != Thing::kBlock && entry.thing != Thing::kPendingFree);
        },
        event);
    forget_orphans();
}

void LiveTable::forget_ranges(const EventRecord& event) {
    forget(
        [](const Entry& entry, const EventRecord&) {
            return entry.thing != Thing::kRange && entry.thing != Thing::kRangeDepth &&
                   entry.thing != Thing::kRangeOfThread;
        },
        event);
}

// A report that overlapped another thread's call is less reliable than an older one that did not.
void LiveTable::memory_info(const EventRecord& event) {
    const Entry* known = find(Thing::kMemoryInfo, event.device);
    if ((event.flags & kFlagUnsettled) != 0 && known->thing != Thing::kNone &&
        (known->event.flags & kFlagUnsettled) == 0) {
        return;
    }
    Entry* report = put(Thing::kMemoryInfo, event.device, event);
    if (report != nullptr) {
        report->event.address = held_bytes(event.device);
    }
}

// ---- segments -----------------------------------------------------------------------------------

void LiveTable::remember_segment(Thing thing, const EventRecord& event) {
    if ((event.flags & kFlagFromAllocator) != 0 && event.stream == kStreamUnknown) {
        NewSegment& place = new_segments_[next_new_segment_ % kNewSegments];
        if (place.thing != Thing::kNone &&
            find(place.thing, place.address)->thing != Thing::kNone) {
            count_up(&g_entries_without_room);
        }
        place = {event.address, thing};
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
