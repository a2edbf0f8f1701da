#include "analyzer/report/page/page_phases.h"

#include "analyzer/model/phase_index.h"
#include "analyzer/report/page/page_limits.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

namespace fragtrace::analyzer {
namespace {

const char* lane_name(RangeKind kind) {
    switch (kind) {
        case RangeKind::kNvtx:
            return "NVTX";
        case RangeKind::kCell:
            return "cells";
        case RangeKind::kApi:
            break;
    }
    return "phases";
}

void add_steps(const Timeline& timeline, const Iterations& iterations, PageDevice* page) {
    if (!iterations.found()) {
        return;
    }
    page->phase_lanes.emplace_back("steps");
    for (std::size_t i = 0; i < iterations.begins.size(); ++i) {
        const bool last = i + 1 == iterations.begins.size();
        page->phases.push_back(
            {.name = fmt::format("step {}", i + 1),
             .start_ns = timeline.events[iterations.begins[i]].time_ns,
             .end_ns = last ? kNeverNs : timeline.events[iterations.begins[i + 1]].time_ns});
    }
}

}  // namespace

void add_phases(const Timeline& timeline, const Iterations& iterations, PageDevice* page) {
    add_steps(timeline, iterations, page);
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint8_t> lanes;  // by (thread, depth)
    std::set<std::pair<std::uint32_t, std::uint32_t>> places;
    for (const Phase& phase : timeline.phases) {
        places.emplace(phase.thread, phase.depth);
    }
    // The last lane then has all further threads and depths.
    const bool too_many = page->phase_lanes.size() + places.size() > kMostLanes;
    constexpr auto kLastLane = static_cast<std::uint8_t>(kMostLanes - 1);
    std::unordered_map<std::uint32_t, std::string> names;
    for (const Phase& phase : timeline.phases) {
        const std::pair place(phase.thread, phase.depth);
        auto lane = lanes.find(place);
        if (lane == lanes.end()) {
            const std::size_t next = std::min<std::size_t>(page->phase_lanes.size(), kLastLane);
            lane = lanes.emplace(place, static_cast<std::uint8_t>(next)).first;
            if (page->phase_lanes.size() < kMostLanes) {
                page->phase_lanes.emplace_back(
                    too_many && next == kLastLane ? "others" : lane_name(phase.kind));
            }
        }
        auto [name, fresh] = names.try_emplace(phase.name);
        if (fresh) {
            name->second = text_of(timeline, phase.name);
        }
        page->phases.push_back({.name = name->second,
                                .start_ns = timeline.events[phase.begin].time_ns,
                                .end_ns = phase.end >= timeline.events.size()
                                              ? kNeverNs
                                              : timeline.events[phase.end].time_ns,
                                .lane = lane->second});
    }
    std::stable_sort(
        page->phases.begin(), page->phases.end(), [](const PagePhase& a, const PagePhase& b) {
            return a.start_ns < b.start_ns;
        });
    if (too_many) {
        merge_neighbours(&page->phases, [](const PagePhase& before, const PagePhase& next) {
            return next.lane == kLastLane && next.start_ns < before.end_ns;
        });
    }
    limit_phases(&page->phases, kMostPagePhases);
}

}  // namespace fragtrace::analyzer
