#include "analyzer/analysis/assumptions_and_warnings.h"

#include "analyzer/analysis/address_orders.h"
#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/analysis/program_pool_walk.h"
#include "analyzer/support/terminal.h"
#include "analyzer/support/units.h"
#include "analyzer/trace/losses.h"
#include "analyzer/trace/stack_limit.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace fragtrace::analyzer {

namespace {

bool reads_free_memory(const Timeline& timeline) {
    return std::any_of(timeline.events.begin(), timeline.events.end(), asks_for_free_memory);
}

std::uint64_t held_at(const HeapSnapshot& heap) {
    std::uint64_t sum = 0;
    for (const HeapSegment& segment : heap.segments) {
        sum += segment.size_bytes;
    }
    return sum;
}

// The gaps in the recording, and their consequences.
void add_gaps(const Timeline& timeline, std::vector<std::string>* lines) {
    constexpr std::size_t kMostGaps = 5;
    const auto time_of = [&timeline](EventIndex event) {
        const std::size_t last = timeline.events.size() - 1;
        return format_duration(timeline.events[std::min<std::size_t>(event, last)].time_ns);
    };
    const auto told = [](std::uint64_t count, std::uint64_t bytes) {
        return fmt::format(
            "{} ({})", format_counted(count, "allocation", "allocations"), format_bytes(bytes));
    };
    const bool unlisted = parse_count(timeline.fact("held.without_room")) != 0;
    for (std::size_t i = 0; i < std::min(kMostGaps, timeline.gaps.size()); ++i) {
        const RecordingGap& gap = timeline.gaps[i];
        const std::string from = gap.begin == 0 ? "the begin" : time_of(gap.begin);
        const std::string to = gap.end < timeline.events.size() ? time_of(gap.end) : "the end";
        std::string line = gap.left_out == 0
                               ? fmt::format("recording was stopped from {} to {}", from, to)
                               : fmt::format("{} from {} to {} were not read",
                                             format_counted(gap.left_out, "event", "events"),
                                             from,
                                             to);
        if (gap.freed != 0) {
            line += unlisted ? "; freed during this time, or live and unknown since: "
                             : "; freed during this time: ";
            line += told(gap.freed, gap.freed_bytes);
        }
        if (gap.made != 0) {
            line += fmt::format(
                "; allocated during this time and live at its end: {}{}",
                told(gap.made, gap.made_bytes),
                gap.left_out != 0 ? "" : ", without stacks unless FRAGTRACE_STOPPED_STACKS is set");
        }
        lines->push_back(line);
    }
    if (timeline.gaps.size() > kMostGaps) {
        lines->push_back(fmt::format("and {} more times", timeline.gaps.size() - kMostGaps));
    }
    if (timeline.damage.after_gap != 0) {
        lines->push_back(fmt::format(
            "{} are consequences of these gaps, such as frees of blocks allocated in a gap",
            format_counted(timeline.damage.after_gap, "event", "events")));
    }
}

bool begins_in_midlife(const Timeline& timeline) {
    const EventIndex first = timeline.checkpoints.front().begin;
    return first == 0 || (!timeline.gaps.empty() && timeline.gaps.front().begin == 0 &&
                          timeline.gaps.front().end + 1 == first);
}

std::uint64_t contexts_destroyed(const Timeline& timeline, DeviceId device) {
    return static_cast<std::uint64_t>(
        std::count_if(timeline.events.begin(), timeline.events.end(), [device](const Event& event) {
            return event.kind == EventKind::kContextDestroy && event.device == device;
        }));
}

const char* pending_text(PendingRule rule) {
    switch (rule) {
        case PendingRule::kRecorded:
            return "in a replay, cross-stream frees complete at the same event as in the recorded "
                   "run (--pending at-once and --pending never are the extremes)";
        case PendingRule::kAtOnce:
            return "cross-stream frees complete at once, the earliest possible (--pending)";
        case PendingRule::kNever:
            return "cross-stream frees complete only when the pool waits for the device, the "
                   "latest possible (--pending)";
    }
    return "";
}

// What the virtual GPU's NCCL replaced or assumed.
void add_virtual_nccl(const Timeline& timeline, std::vector<std::string>* lines) {
    if (const std::uint64_t results = parse_count(timeline.fact("nccl.zeros.results"));
        results != 0) {
        lines->push_back(fmt::format(
            "at least {} of NCCL ({}) were larger than {} and brought zeros; what a program "
            "decides by their values may differ from a real run",
            format_counted(results, "result", "results"),
            format_bytes(parse_count(timeline.fact("nccl.zeros.bytes"))),
            format_bytes(parse_count(timeline.fact("nccl.zeros.larger_than_bytes")))));
    }
    const std::string card = timeline.fact("environment.FRAGTRACE_VIRTUAL_GPU");
    const std::size_t at = card.find(",nccl=");
    const std::string nccl =
        at == std::string::npos ? "" : card.substr(at + 6, card.find(',', at + 1) - at - 6);
    if (!nccl.empty() && nccl != "off") {
        lines->push_back(nccl == "model"
                             ? "the device memory of NCCL follows a model (nccl=model): 32 "
                               "channels and default buffers, unless the environment says otherwise"
                             : fmt::format("each NCCL communicator is assumed to take {} (nccl=)",
                                           printable(nccl)));
    }
}

// What the recording does not say about the device and its blocks.
void add_unknowns(const Timeline& timeline,
                  const DeviceAnalysis& device,
                  std::vector<std::string>* lines) {
    const ReplayScript& script = device.script;
    if (const std::uint64_t destroyed = contexts_destroyed(timeline, device.device)) {
        lines->push_back(
            fmt::format("device {}: {} destroyed; allocations do not name their context, so "
                        "memory that was still allocated in it counts until its address is "
                        "allocated again or the last context of the device is destroyed",
                        device.device,
                        format_counted(destroyed, "context was", "contexts were")));
    }
    if (device.virtual_gpu) {
        lines->push_back(fmt::format(
            "device {} is virtual: device work ends at once and computes zeros, collectives of "
            "ranks bring only small buffers that a host wrote, PyTorch does not use cuDNN, "
            "workspaces of cuDNN follow a model and those of other libraries are missing; "
            "context and other holders are assumed to take {}",
            device.device,
            format_bytes(device.others_bytes)));
    }
    if (script.requested_unknown != 0) {
        lines->push_back(fmt::format("the requested size of {} is unknown; the block size is used",
                                     format_counted(script.requested_unknown, "block", "blocks")));
    }
    if (script.stream_unknown != 0) {
        lines->push_back(fmt::format("the stream of {} is unknown; the default stream is used",
                                     format_counted(script.stream_unknown, "block", "blocks")));
    }
    if (script.source == ScriptSource::kBlocks && !script.records_empty_cache &&
        segments_known(device.recorded)) {
        lines->push_back(
            "this PyTorch does not show calls of empty_cache that free nothing; none is "
            "assumed");
    }
    if (!script.pending.empty()) {
        lines->emplace_back(pending_text(device.assumptions.pending));
    }
    if (script.stream_ordered != 0) {
        lines->push_back(fmt::format(
            "device {}: {} are ordered by streams and served from the driver's own pool, which "
            "is "
            "not modelled: each counts from its allocation to the call that frees it",
            device.device,
            format_counted(script.stream_ordered, "allocation", "allocations")));
    }
}

// How replays deal with what they cannot know or change.
void add_limits_of_replays(const Timeline& timeline,
                           const DeviceAnalysis& device,
                           std::vector<std::string>* lines) {
    const ReplayScript& script = device.script;
    if (!script.checkpoints.empty() && !script.checkpoints.front().segments.empty() &&
        begins_in_midlife(timeline)) {
        lines->push_back(fmt::format(
            "device {}: {}; the {} that were in use then are known from the list of live "
            "memory in the file",
            device.device,
            timeline.events_in_file == 0 ? "the recording began after the program"
                                         : "the first events were not read",
            format_bytes(held_at(script.checkpoints.front()))));
    }
    if (const auto orders = try_address_orders(device); orders && orders->differ()) {
        lines->push_back(fmt::format(
            "device {}: before PyTorch 2.13 the allocator chooses among equal blocks by "
            "address, which other settings change; with {} orders of addresses the recorded "
            "settings reserve {} to {} at most and run out of memory {} to {} times",
            device.device,
            orders->orders,
            format_bytes(orders->least_reserved_bytes),
            format_bytes(orders->most_reserved_bytes),
            orders->least_ooms,
            orders->most_ooms));
    }
    if (script.rewinds != 0) {
        lines->push_back(fmt::format(
            "device {}: private pools were reset to a checkpoint {} (CUDA graph trees): their "
            "blocks after it are taken from the recording, not replayed",
            device.device,
            format_counted(script.rewinds, "time", "times")));
    }
    if (!script.settings.empty()) {
        lines->push_back(
            fmt::format("the program changed the allocator's settings {} at run time: "
                        "replays under other settings begin with the new settings and then "
                        "follow the program",
                        format_counted(script.settings.size(), "time", "times")));
    }
}

void add_card(const DeviceAnalysis& device, std::vector<std::string>* lines) {
    if (device.capacity_known) {
        lines->push_back(fmt::format(
            "device {}: replays on other cards and under other settings assume that a driver "
            "request takes whole pages of {}, and that requests up to half a page share one "
            "(--driver-page)",
            device.device,
            format_bytes(device.assumptions.driver_page_bytes)));
        lines->push_back(fmt::format(
            "device {}: replays leave {} of the card to the CUDA context and other holders "
            "(--context)",
            device.device,
            format_bytes(device.others_bytes)));
        if (device.last_sample.kept_bytes != 0) {
            lines->push_back(fmt::format(
                "device {}: the driver refused a request of less than it reported as free: at "
                "least {} of that memory cannot be allocated, and counts as used",
                device.device,
                format_bytes(device.last_sample.kept_bytes)));
        }
        // PyTorch reads the properties of all cards itself and caches them, so a program's
        // query shows no call.
        lines->push_back(fmt::format(
            "device {}: rows of other cards replay the recorded requests; a program that reads "
            "the size of the card (no recorded call shows this) may request other sizes there",
            device.device));
    } else {
        lines->push_back(
            "the trace does not say how large the card is: no capacity is assumed; "
            "give --capacity");
        if (!segments_known(device.recorded) && device.recorded.ooms != 0) {
            lines->push_back(
                "requests that failed are left out of the rows: a card without limit would "
                "serve them");
        }
    }
}

void add_assumptions(const Timeline& timeline, Analysis* analysis) {
    std::vector<std::string>& lines = analysis->assumptions;
    add_virtual_nccl(timeline, &lines);
    for (const DeviceAnalysis& device : analysis->devices) {
        add_unknowns(timeline, device, &lines);
        add_limits_of_replays(timeline, device, &lines);
        add_card(device, &lines);
    }
    for (auto fact = timeline.facts.lower_bound("snapshot.assumed.");
         fact != timeline.facts.end() && fact->first.starts_with("snapshot.assumed.");
         ++fact) {
        lines.push_back(fact->second);
    }
    if (reads_free_memory(timeline)) {
        lines.push_back(
            "the program queries free memory and may adapt: rows with another amount of free "
            "memory at that moment are estimates");
    }
}

// Facts that count data, other than events, that the recorder had to omit. The notes of the reading
// have the others.
struct Loss {
    const char* fact;
    const char* one;
    const char* many;
    const char* rest;
};

constexpr Loss kLosses[] = {
    {"held.without_room",
     "live allocation is",
     "live allocations are",
     " missing at the start of this part: the recorder had no memory for its list of them. Their "
     "frees are unknown too"},
    {"ranges.without_room",
     "phase",
     "phases",
     " may lack their begin or end: the recorder had no room for so many open ranges"},
    {"tables.without_room",
     "context, pool, allocator, name, label or new segment",
     "contexts, pools, allocators, names, labels or new segments",
     " could not be remembered: the recorder's tables for them were full. The device, pool, "
     "stream, "
     "name or label of what belongs to them may be missing"},
};

// Facts with "off", "incomplete" or "unknown" and the reason, if something was not recorded.
constexpr std::pair<const char*, const char*> kStates[] = {
    {"stacks.native", "native stacks are"},
    {"stacks.python", "python stacks are"},
    {"torch.pools", "PyTorch's private pools are"},
    {"torch.captures", "PyTorch's captures of graphs are"},
    {"tensorflow.pool", "the record of TensorFlow's pool is"},
    {"jax.pool", "the record of JAX's pool is"},
    {"onnxruntime.pool", "the record of ONNX Runtime's arena is"},
    {"ggml.pool", "the record of ggml's pools is"},
    {"nvtx.memory", "the record of NVTX's heaps and regions is"},
};

// Rules that are probably typing errors. A starter has rules for more than one program uses.
void add_unused_rules(const Analysis& analysis, std::vector<std::string>* lines) {
    constexpr std::size_t kMostNamed = 5;
    if (!analysis.categories || analysis.categories->starter) {
        return;
    }
    const CategoryRules& rules = *analysis.categories;
    std::string named;
    std::size_t unused = 0;
    for (std::size_t i = 0; i < rules.rules.size(); ++i) {
        if (!use_of_rule(analysis, i).matched && ++unused <= kMostNamed) {
            named += fmt::format("{}'{}' (line {})",
                                 named.empty() ? "" : ", ",
                                 rules.rules[i].name,
                                 rules.rules[i].line);
        }
    }
    if (unused != 0) {
        lines->push_back(fmt::format("{}: {} {} no allocation: {}{}",
                                     rules.file,
                                     format_counted(unused, "rule", "rules"),
                                     unused == 1 ? "matches" : "match",
                                     named,
                                     unused > kMostNamed ? ", ..." : ""));
    }
    std::uint64_t frames = 0;
    std::uint64_t stacks = 0;
    for (const DeviceAnalysis& device : analysis.devices) {
        frames += device.held.rule_frames_left_out;
        stacks += device.held.stacks_left_out;
    }
    if (frames + stacks != 0) {
        lines->push_back(fmt::format("{}: no rule was tried on {} and {}, beyond the limits",
                                     rules.file,
                                     format_counted(stacks, "stack", "stacks"),
                                     format_counted(frames, "frame", "frames")));
    }
}

void add_warnings(const Timeline& timeline, Analysis* analysis) {
    const TraceDamage& damage = timeline.damage;
    std::vector<std::string>& lines = analysis->warnings;
    lines.insert(lines.end(), damage.notes.begin(), damage.notes.end());
    add_gaps(timeline, &lines);
    if (damage.bytes_unreadable != 0) {
        lines.push_back(
            fmt::format("the file is damaged: {} cannot be read, and their events are missing",
                        format_bytes(damage.bytes_unreadable)));
    }
    if (damage.events_lost != 0) {
        lines.push_back(
            fmt::format("{} lost while recording; figures after them may be wrong",
                        format_counted(damage.events_lost, "event was", "events were")));
    }
    if (damage.events_unfinished != 0) {
        lines.push_back(
            fmt::format("{} not returned when the process died",
                        format_counted(damage.events_unfinished, "call had", "calls had")));
    }
    for (const Loss& loss : kLosses) {
        const std::uint64_t count = parse_count(timeline.fact(loss.fact));
        if (count != 0) {
            lines.push_back(format_counted(count, loss.one, loss.many) + loss.rest);
        }
    }
    if (analysis->run.cut_stacks != 0) {
        lines.push_back(
            fmt::format("{} stacks of {} frames, the recorder's limit: outer frames may be missing",
                        format_counted(analysis->run.cut_stacks, "event has", "events have"),
                        stack_depth_limit(timeline)));
    }
    const std::string rejected = timeline.fact("options.rejected");
    if (!rejected.empty()) {
        lines.push_back(fmt::format(
            "the setting {} was not understood while recording: its default was used", rejected));
    }
    for (const auto& [fact, what] : kStates) {
        const std::string state = timeline.fact(fact);
        if (state.starts_with("off") || state.starts_with("incomplete") ||
            state.starts_with("unknown")) {
            lines.push_back(fmt::format("{} {}", what, state));
        }
    }
    for (const DeviceAnalysis& device : analysis->devices) {
        if (device.violations != 0) {
            lines.push_back(fmt::format("device {}: {} recorded events contradict each other",
                                        device.device,
                                        format_count(device.violations)));
        }
        if (device.troubles > device.diagnoses.size()) {
            lines.push_back(
                fmt::format("device {}: {} out-of-memories and retries, the first {} "
                            "diagnosed",
                            device.device,
                            format_count(device.troubles),
                            device.diagnoses.size()));
        }
    }
    const auto& pools = analysis->program_pools;
    if (std::any_of(pools.begin(), pools.end(), [](const ProgramPool& pool) {
            return pool.number == kPoolOfTheRest;
        })) {
        lines.push_back(
            "the program created more pools than are kept: the entry '(more pools than are kept)' "
            "of its pools stands for several");
    }
    add_unused_rules(*analysis, &lines);
}

}  // namespace

void add_assumptions_and_warnings(Analysis* analysis) {
    add_assumptions(analysis->timeline, analysis);
    add_warnings(analysis->timeline, analysis);
}

}  // namespace fragtrace::analyzer
