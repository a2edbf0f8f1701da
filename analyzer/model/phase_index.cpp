#include "analyzer/model/phase_index.h"

#include "analyzer/model/library_ranges.h"

#include <algorithm>

namespace fragtrace::analyzer {

void PhaseIndex::Lane::add(const Timeline& timeline, std::uint32_t phase) {
    const EventIndex begin = timeline.phases[phase].begin;
    while (!open.empty() && timeline.phases[phases[open.back()]].end <= begin) {
        open.pop_back();
    }
    around.push_back(open.empty() ? kNone : open.back());
    open.push_back(static_cast<std::uint32_t>(phases.size()));
    phases.push_back(phase);
}

std::uint32_t PhaseIndex::Lane::find(const Timeline& timeline, EventIndex event) const {
    const auto after = std::upper_bound(
        phases.begin(), phases.end(), event, [&timeline](EventIndex at, std::uint32_t phase) {
            return at < timeline.phases[phase].begin;
        });
    if (after == phases.begin()) {
        return kNone;
    }
    auto at = static_cast<std::uint32_t>(after - phases.begin() - 1);
    while (at != kNone && timeline.phases[phases[at]].end < event) {
        at = around[at];
    }
    return at == kNone ? kNone : phases[at];
}

PhaseIndex::PhaseIndex(const Timeline& timeline)
    : timeline_(&timeline), library_(library_phases(timeline)) {
    for (std::uint32_t i = 0; i < timeline.phases.size(); ++i) {
        if (library_[i]) {
            continue;
        }
        threads_[timeline.phases[i].thread].add(timeline, i);
        all_.add(timeline, i);
    }
}

std::uint32_t PhaseIndex::phase_of(EventIndex event) const {
    if (timeline_->phases.empty() || event >= timeline_->events.size()) {
        return kNone;
    }
    const OriginId origin = timeline_->events[event].origin;
    const std::uint32_t thread =
        origin < timeline_->origins.size() ? timeline_->origins[origin].thread : 0;
    const auto lane = threads_.find(thread);
    const std::uint32_t own = lane == threads_.end() ? kNone : lane->second.find(*timeline_, event);
    return own != kNone ? own : all_.find(*timeline_, event);
}

std::string PhaseIndex::name_of(EventIndex event) const {
    const std::uint32_t phase = phase_of(event);
    return phase == kNone ? std::string() : text_of(*timeline_, timeline_->phases[phase].name);
}

}  // namespace fragtrace::analyzer
