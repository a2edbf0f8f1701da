#include "analyzer/trace/pairing_defects.h"

#include "analyzer/support/units.h"

#include <cstddef>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kNotesPerDefect = 5;

}  // namespace

void PairingDefects::over_live(EventIndex index, EventIndex former) {
    if (after_gap_) {
        ++after_gap_count_;
        return;
    }
    if (allocs_over_live_++ < kNotesPerDefect) {
        notes_.push_back(fmt::format(
            "event {}: {:#x} is allocated, but the allocation of event {} there is still live",
            index,
            timeline_.events[index].address,
            former));
    }
}

void PairingDefects::without_alloc(EventIndex index) {
    if (after_gap_) {
        ++after_gap_count_;
        return;
    }
    if (frees_without_alloc_++ < kNotesPerDefect) {
        notes_.push_back(fmt::format("event {}: {:#x} is freed, but was not allocated in the trace",
                                     index,
                                     timeline_.events[index].address));
    }
}

void PairingDefects::finish() {
    TraceDamage& damage = timeline_.damage;
    damage.frees_without_alloc += frees_without_alloc_;
    damage.allocs_over_live += allocs_over_live_;
    damage.after_gap += after_gap_count_;
    damage.notes.insert(damage.notes.end(), notes_.begin(), notes_.end());
    if (frees_without_alloc_ > kNotesPerDefect || allocs_over_live_ > kNotesPerDefect) {
        damage.notes.push_back(
            fmt::format("in total {} of memory that was not allocated in the trace, and {} at "
                        "addresses still in use",
                        format_counted(frees_without_alloc_, "free", "frees"),
                        format_counted(allocs_over_live_, "allocation", "allocations")));
    }
}

}  // namespace fragtrace::analyzer
