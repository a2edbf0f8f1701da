#include "analyzer/analysis/compare/iteration_profile.h"

#include "analyzer/analysis/iterations/iterations.h"
#include "analyzer/model/recorded_state.h"

#include <algorithm>

namespace fragtrace::analyzer {

IterationProfile iteration_profile(const Timeline& timeline, DeviceId device) {
    RecordedState state(timeline);
    const Iterations iterations =
        find_iterations(timeline, requests_of(timeline, device, state.has_block_layer(device)));
    IterationProfile profile;
    profile.device = device;
    profile.from_phases = iterations.source == Iterations::Source::kPhases;
    profile.match_rate = iterations.match_rate;
    std::int64_t at_begin = 0;
    const auto end_stretch = [&] {
        if (!profile.stretches.empty()) {
            profile.stretches.back().left_bytes =
                static_cast<std::int64_t>(state.totals(device).allocated) - at_begin;
        }
    };
    const std::uint64_t last_ns = timeline.events.empty() ? 0 : timeline.events.back().time_ns;
    const auto count = static_cast<EventIndex>(timeline.events.size());
    for (const EventIndex begin : iterations.begins) {
        if (begin >= count) {
            break;
        }
        while (state.position() < count) {
            if (state.position() == begin) {
                end_stretch();
                const std::uint64_t begin_ns = timeline.events[begin].time_ns;
                if (!profile.times.empty()) {
                    profile.times.back().end_ns = begin_ns;
                }
                profile.times.push_back({begin_ns, last_ns});
                at_begin = static_cast<std::int64_t>(state.totals(device).allocated);
                profile.stretches.emplace_back();
                break;
            }
            state.advance();
            if (!profile.stretches.empty()) {
                profile.stretches.back().take(state.totals(device).allocated,
                                              state.totals(device).reserved);
            }
        }
    }
    while (!profile.stretches.empty() && state.position() < count) {
        state.advance();
        profile.stretches.back().take(state.totals(device).allocated,
                                      state.totals(device).reserved);
    }
    end_stretch();
    return profile;
}

}  // namespace fragtrace::analyzer
