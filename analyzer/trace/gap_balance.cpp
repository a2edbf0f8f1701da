#include "analyzer/trace/gap_balance.h"

namespace fragtrace::analyzer {
namespace {

std::uint64_t bytes_of(const Event& event) {
    return event.kind == EventKind::kBlockAlloc ? event.extra : event.size_bytes;
}

}  // namespace

void GapBalance::begin(EventIndex checkpoint, PairMap driver, PairMap pool) {
    gap_ = nullptr;
    for (RecordingGap& gap : timeline_.gaps) {
        gap_ = gap.end + 1 == checkpoint ? &gap : gap_;
    }
    before_[kDriver] = std::move(driver);
    before_[kPool] = std::move(pool);
}

void GapBalance::told(Layer layer, EventIndex index) {
    const Event& event = timeline_.events[index];
    const EventIndex former = before_[layer].find(event.address, event.device);
    if (former != PairMap::kAbsent && timeline_.events[former].time_ns == event.time_ns) {
        before_[layer].take(event.address, event.device);
    } else {
        ++made_[layer].count;
        made_[layer].bytes += bytes_of(event);
    }
}

void GapBalance::end(EventIndex index, bool holds_blocks) {
    if (gap_ == nullptr) {
        return;
    }
    Sum freed[kLayers];
    for (const Layer layer : {kDriver, kPool}) {
        before_[layer].for_each([this, layer, &freed](EventIndex alloc) {
            ++freed[layer].count;
            freed[layer].bytes += bytes_of(timeline_.events[alloc]);
        });
    }
    const bool pools = made_[kPool].count + freed[kPool].count != 0 || holds_blocks;
    const Layer layer = pools ? kPool : kDriver;
    gap_->freed = freed[layer].count;
    gap_->freed_bytes = freed[layer].bytes;
    gap_->made = made_[layer].count;
    gap_->made_bytes = made_[layer].bytes;
    checkpoint_ends_.emplace_back(gap_, index);
    made_[kDriver] = made_[kPool] = {};
    gap_ = nullptr;
}

void GapBalance::settle_times() {
    for (const auto& [gap, checkpoint_end] : checkpoint_ends_) {
        for (EventIndex i = gap->end + 1; gap->begin != 0 && i < checkpoint_end; ++i) {
            Event event = timeline_.events[i];
            event.time_ns = timeline_.events[gap->end].time_ns;
            timeline_.events.set(i, event);
        }
    }
}

}  // namespace fragtrace::analyzer
