#include "live_table.h"

#include "sys.h"

#include <algorithm>
#include <string.h>

namespace fragtrace::preload {
namespace {

constexpr size_t kLeastCapacity = 4096;

uint64_t mixed(uint64_t value) {
    value = (value ^ (value >> 32)) * 0x9e3779b97f4a7c15u;
    return value ^ (value >> 29);
}

}  // namespace

// ---- the table ----------------------------------------------------------------------------------

bool LiveTable::create() {
    memset(static_cast<void*>(this), 0, sizeof *this);
    return rebuild(kLeastCapacity, nullptr, EventRecord{});
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
bool LiveTable::rebuild(size_t capacity, Keep* keep, const EventRecord& event) {
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
        if (old[i].thing != Thing::kNone && (keep == nullptr || keep(old[i], event))) {
            *find(old[i].thing, old[i].key) = old[i];
            ++used_;
        }
    }
    unmap(old, old_capacity * sizeof(Entry));
    return true;
}

LiveTable::Entry* LiveTable::put(Thing thing, uint64_t key, const EventRecord& event) {
    if (used_ >= capacity_ / 2 && !rebuild(capacity_ * 2, nullptr, event) &&
        used_ >= capacity_ / 8 * 7) {
        ++lost_;
        return nullptr;
    }
    Entry* entry = find(thing, key);
    used_ += entry->thing == Thing::kNone ? 1 : 0;
    *entry = Entry{event, key, 0, thing};
    return entry;
}

void LiveTable::erase(Thing thing, uint64_t key) {
    Entry* entry = find(thing, key);
    if (entry->thing == Thing::kNone) {
        return;
    }
    remove(entry);
    if (capacity_ > kLeastCapacity && used_ < capacity_ / 16) {
        rebuild(capacity_ / 4, nullptr, EventRecord{});
    }
}

// Entries behind the gap that would not be found any more move up into it.
void LiveTable::remove(Entry* gap) {
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
        if (entry.thing == Thing::kPhysical || entry.thing == Thing::kImport) {
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
            case Thing::kImport:
                *to++ = entry.event;
                for (uint32_t retain = 0; retain < entry.count; ++retain, ++to) {
                    *to = entry.event;
                    to->kind = EventKind::kPhysicalRetain;
                    to->size = to->extra = 0;
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
        const bool a_retains = a.kind == EventKind::kPhysicalRetain;
        const bool b_retains = b.kind == EventKind::kPhysicalRetain;
        return a.sequence != b.sequence ? a.sequence < b.sequence : a_retains < b_retains;
    });
}

}  // namespace fragtrace::preload
