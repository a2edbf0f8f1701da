#include "analyzer/analysis/compare/profile.h"

#include "analyzer/analysis/holders/holders.h"
#include "analyzer/analysis/metrics/measure.h"
#include "analyzer/model/phase_index.h"
#include "analyzer/model/unknown_segments.h"
#include "analyzer/replay/script.h"
#include "analyzer/trace/user_frame.h"

#include <algorithm>
#include <map>
#include <utility>

namespace fragtrace::analyzer {
namespace {

// Groups by line, then by stack. Stacks with equal text are one.
std::vector<HeldByLine> held_by_line(const Timeline& timeline,
                                     const HeapSnapshot& heap,
                                     Symbolizer* symbols) {
    const BlockLabels labels(timeline, heap, symbols);
    std::map<std::pair<OriginId, std::uint64_t>, HeldBy> by_key;
    for (const HeapBlock& block : heap.blocks) {
        if (block.state != BlockState::kFree) {
            by_key[labels.key_of(block)].add(block.size_bytes, 1);
        }
    }
    std::map<std::string, std::map<std::vector<std::string>, HeldByStack>> by_label;
    for (auto& [key, held] : by_key) {
        std::vector<std::string> frames;
        for (const Frame& frame : symbols->frames(key.first)) {
            frames.push_back(describe_frame(frame));
        }
        HeldByStack& row = by_label[labels.label_of(key)][frames];
        row.frames = std::move(frames);
        row.held.add(held.bytes, held.blocks);
    }
    std::vector<HeldByLine> lines;
    for (auto& [label, stacks] : by_label) {
        HeldByLine& line = lines.emplace_back();
        line.held.label = label;
        for (auto& [frames, stack] : stacks) {
            line.held.add(stack.held.bytes, stack.held.blocks);
            line.stacks.push_back(std::move(stack));
        }
    }
    return lines;
}

DeviceProfile device_profile(const Timeline& timeline,
                             DeviceId device,
                             const DeviceMetrics& metrics,
                             bool has_peak,
                             Symbolizer* symbols) {
    DeviceProfile profile;
    profile.device = device;
    profile.name = device_name(timeline, device);
    profile.run = metrics.summary;
    if (profile.run.ooms == 0 && !shows_failures(timeline.facts)) {
        profile.run.ooms = kUnknown64;
    }
    profile.state_only = metrics.state_only;
    if (has_peak && metrics.peak_state_end != 0) {
        RecordedState state(timeline);
        state.advance_to(metrics.peak_state_end);
        profile.holders = held_by_line(timeline, state.snapshot(device), symbols);
        profile.peak_ns = timeline.events[metrics.peak_state_end - 1].time_ns;
    }
    return profile;
}

TimeSpan time_of(const Timeline& timeline, std::uint32_t range) {
    const Phase& phase = timeline.phases[range];
    const bool ended = phase.end < timeline.events.size();
    return {timeline.events[phase.begin].time_ns,
            ended ? timeline.events[phase.end].time_ns : timeline.events.back().time_ns};
}

std::vector<PhaseProfile> phase_profiles(const Timeline& timeline,
                                         const std::vector<PhaseRange>& ranges) {
    std::vector<PhaseProfile> profiles;
    std::map<std::pair<std::string, RangeKind>, std::size_t> rows;
    std::uint64_t ended = 0;
    std::vector<PhaseStretch> stretches(timeline.phases.size());
    for (const PhaseRange& range : ranges) {
        stretches[range.phase] = {range.figures, ended++, time_of(timeline, range.phase)};
    }
    for (std::size_t i = 0; i < timeline.phases.size(); ++i) {
        const Phase& phase = timeline.phases[i];
        const auto [row, is_new] =
            rows.try_emplace({text_of(timeline, phase.name), phase.kind}, profiles.size());
        if (is_new) {
            profiles.emplace_back();
            profiles.back().name = row->first.first;
            profiles.back().kind = phase.kind;
        }
        PhaseProfile& profile = profiles[row->second];
        ++profile.count;
        profile.figures.add(stretches[i].figures);
        profile.stretches.push_back(stretches[i]);
    }
    return profiles;
}

// Whether a part of a run has the moment at which reserved memory reached the maximum of the whole
// run. A part may hold as much later, and other blocks then.
bool has_peak_of(const TraceSummary& whole,
                 DeviceId device,
                 const Timeline& part,
                 const DeviceMetrics& measured) {
    const auto found = std::find_if(
        whole.devices.begin(), whole.devices.end(), [device](const DeviceSummary& one) {
            return one.device == device;
        });
    if (found != whole.devices.end() && found->metrics.summary.peak_reserved == 0) {
        return true;  // there is none
    }
    return found != whole.devices.end() && measured.peak_event < part.events.size() &&
           part.events[measured.peak_event].time_ns == found->peak_time_ns &&
           measured.summary.peak_reserved == found->metrics.summary.peak_reserved;
}

}  // namespace

RunProfile profile_of(const Timeline& timeline, Symbolizer* symbols, const TraceSummary* whole) {
    RunProfile profile;
    profile.path = timeline.path;
    profile.command_line = timeline.fact("command_line");
    profile.events = timeline.recorded_events();
    profile.events_read = timeline.events_read();
    profile.events_lost = timeline.damage.events_lost;
    profile.has_holders = true;
    profile.all_holders = true;
    profile.has_phases = whole == nullptr;
    profile.has_facts = true;
    const std::vector<DeviceId> devices = replayable_devices(timeline);
    RecordedRun run = measure(timeline, devices);
    if (whole != nullptr) {
        for (std::size_t i = 0; i < devices.size(); ++i) {
            profile.has_holders =
                profile.has_holders && has_peak_of(*whole, devices[i], timeline, run.devices[i]);
        }
        take_whole_run(*whole, devices, &run.devices);
    }
    for (std::size_t i = 0; i < devices.size(); ++i) {
        const DeviceId device = devices[i];
        profile.devices.push_back(
            device_profile(timeline, device, run.devices[i], profile.has_holders, symbols));
        if (whole != nullptr) {
            continue;
        }
        if (IterationProfile found = iteration_profile(timeline, device);
            !found.stretches.empty()) {
            profile.iterations.push_back(std::move(found));
        }
    }
    if (profile.has_phases) {
        profile.phases = phase_profiles(timeline, run.phase_ranges);
    }
    for (const auto& [key, value] : timeline.facts) {
        if (!key.starts_with("text.")) {
            profile.facts[key] = value;
        }
    }
    return profile;
}

}  // namespace fragtrace::analyzer
