// Slices in a file of Perfetto that may overlap.
#pragma once

#include "analyzer/export/perfetto_file.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace fragtrace::analyzer {

// Tracks beside each other, for slices of one thread that do not nest.
inline constexpr std::size_t kMostLanes = 64;

// `begin` and `end` are times, or numbers of events.
struct PerfettoSlice {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    PerfettoFile::Text name;
    PerfettoFile::Text category;
};

struct PerfettoLane {
    PerfettoFile::Track track = 0;
    std::vector<std::uint64_t> open;  // ends of the open slices, the innermost last
    std::uint64_t now_ns = 0;
};

// Writes slices, which come in order of their begins. The slices of one track must nest, so others
// go to further tracks. `time_of` turns `begin` and `end` into a time; nullopt: the slice did not
// end. `add_lane` makes the track with a number. Returns how many slices found no place.
template <typename TimeOf, typename AddLane>
std::uint64_t write_slices(PerfettoFile* file,
                           const std::vector<PerfettoSlice>& slices,
                           TimeOf time_of,
                           AddLane add_lane) {
    std::vector<PerfettoLane> lanes;
    std::uint64_t left_out = 0;
    const auto close_until = [&](PerfettoLane* lane, std::uint64_t until) {
        while (!lane->open.empty() && lane->open.back() <= until) {
            if (const std::optional<std::uint64_t> time = time_of(lane->open.back())) {
                lane->now_ns = std::max(lane->now_ns, *time);
                file->end(lane->track, lane->now_ns);
            }
            lane->open.pop_back();
        }
    };
    for (const PerfettoSlice& slice : slices) {
        auto lane = std::find_if(lanes.begin(), lanes.end(), [&](PerfettoLane& one) {
            close_until(&one, slice.begin);
            return one.open.empty() || slice.end <= one.open.back();
        });
        if (lane == lanes.end()) {
            if (lanes.size() == kMostLanes) {
                ++left_out;
                continue;
            }
            lane = lanes.insert(lanes.end(), PerfettoLane{add_lane(lanes.size()), {}, 0});
        }
        lane->now_ns = std::max(lane->now_ns, time_of(slice.begin).value_or(0));
        file->begin(lane->track, lane->now_ns, slice.name, slice.category);
        lane->open.push_back(slice.end);
    }
    for (PerfettoLane& lane : lanes) {
        close_until(&lane, ~std::uint64_t{0});
    }
    return left_out;
}

}  // namespace fragtrace::analyzer
