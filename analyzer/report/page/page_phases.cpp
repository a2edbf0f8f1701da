#include "analyzer/report/page/page_phases.h"

#include "analyzer/model/phase_index.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kMostLanes = 7;  // steps, and six nesting depths of threads

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

// "load", "load, step", "load, step, save, ...".
void add_name(const std::string& name, std::string* names) {
    constexpr std::size_t kMostNames = 3;
    std::size_t count = 1;
    for (std::size_t at = 0; at < names->size(); ++count) {
        const std::size_t end = std::min(names->find(", ", at), names->size());
        if (names->compare(at, end - at, name) == 0) {
            return;
        }
        at = end + (end < names->size() ? 2 : 0);
    }
    if (names->ends_with(", ...")) {
        return;
    }
    *names += count > kMostNames ? ", ..." : ", " + name;
}

// Makes one range of a phase and the next ones of its lane that `joins` accepts.
template <typename Joins>
void merge_neighbours(std::vector<PagePhase>* phases, Joins joins) {
    std::vector<PagePhase> merged;
    std::array<std::size_t, kMostLanes> last = {};  // of each lane: number of its last one, from 1
    for (PagePhase& phase : *phases) {
        std::size_t& at = last[phase.lane];
        if (at == 0 || !joins(merged[at - 1], phase)) {
            merged.push_back(std::move(phase));
            at = merged.size();
            continue;
        }
        PagePhase& before = merged[at - 1];
        before.end_ns = std::max(before.end_ns, phase.end_ns);
        before.count += phase.count;
        add_name(phase.name, &before.name);
    }
    *phases = std::move(merged);
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
    for (const PagePhase& phase : page->phases) {
        page->phases_merged += phase.count > 1 ? phase.count : 0;
    }
}

void limit_phases(std::vector<PagePhase>* phases, std::size_t most) {
    if (phases->size() <= most) {
        return;
    }
    std::uint64_t end_ns = 0;
    for (const PagePhase& phase : *phases) {
        end_ns = std::max(end_ns, phase.end_ns == kNeverNs ? phase.start_ns : phase.end_ns);
    }
    const std::uint64_t begin_ns = phases->front().start_ns;
    // In a lane, few phases are longer than the width, and the others share few ranges of it.
    for (std::uint64_t width_ns = (end_ns - begin_ns) / most + 1; phases->size() > most;
         width_ns *= 2) {
        merge_neighbours(phases, [&](const PagePhase& before, const PagePhase& next) {
            const auto is_short = [=](const PagePhase& phase) {
                return std::min(phase.end_ns, end_ns) - phase.start_ns < width_ns;
            };
            return is_short(before) && is_short(next) &&
                   (before.start_ns - begin_ns) / width_ns == (next.start_ns - begin_ns) / width_ns;
        });
    }
}

}  // namespace fragtrace::analyzer
