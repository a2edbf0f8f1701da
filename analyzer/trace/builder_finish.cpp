// The last steps of a TimelineBuilder: puts events in order, and decides what depends on the whole
// trace.
#include "analyzer/support/units.h"
#include "analyzer/trace/block_labels.h"
#include "analyzer/trace/builder.h"
#include "analyzer/trace/phases.h"
#include "analyzer/trace/pool_identities.h"
#include "analyzer/trace/reading_notes.h"
#include "analyzer/trace/recording_spans.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kMaxNotes = 100;

}  // namespace

void TimelineBuilder::put_in_order() {
    if (in_order_) {
        return;
    }
    forget_pairs();
    const std::vector<std::uint64_t> sequences = sequences_.all();
    std::vector<std::uint32_t> order(sequences.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return sequences[a] < sequences[b];
    });
    order.erase(
        std::unique(order.begin(),
                    order.end(),
                    [&](std::uint32_t a, std::uint32_t b) { return sequences[a] == sequences[b]; }),
        order.end());
    std::vector<std::uint32_t> times(sequences.size());
    for (const auto& [event, duration_ns] : timeline_.durations) {
        times[event] = duration_ns;
    }
    EventTable events;
    SparseColumn pools;
    sequences_ = {};
    remarks_.clear();
    timeline_.durations.clear();
    for (const std::uint32_t from : order) {
        const auto to = static_cast<EventIndex>(events.size());
        events.push_back(timeline_.events[from]);
        if (has_trait(timeline_.events.kind(from), kRemark)) {
            remarks_.push_back(to);
        }
        sequences_.push_back(sequences[from]);
        pools.add(to, timeline_.event_pools.at(from));
        if (times[from] != 0) {
            timeline_.durations.emplace_back(to, times[from]);
        }
    }
    timeline_.events = std::move(events);
    timeline_.event_pools = std::move(pools);
    in_order_ = true;
}

void TimelineBuilder::check_references() {
    std::size_t unknown = 0;
    const auto check = [&](std::uint32_t* node) {
        if (*node >= timeline_.nodes.size() || node_known_[*node] == 0) {
            *node = 0;
            ++unknown;
        }
    };
    for (Origin& origin : timeline_.origins) {
        check(&origin.native_stack);
        check(&origin.python_stack);
    }
    if (unknown != 0) {
        timeline_.damage.notes.push_back(
            fmt::format("{} not in the trace; their events show no stack",
                        format_counted(unknown, "stack is", "stacks are")));
    }
    if (events_left_out_ != 0) {
        timeline_.damage.notes.push_back(
            fmt::format("{} left out: at most {} are kept",
                        format_counted(events_left_out_, "event was", "events were"),
                        max_events_));
    }
    if (too_many_streams_) {
        timeline_.damage.notes.push_back(
            fmt::format("more than {} streams; the others are shown as unknown", kNoStream));
    }
    if (too_many_pools_) {
        timeline_.damage.notes.emplace_back(
            "more than 4096 private pools; the others are shown as the default pool");
    }
    if (kinds_[0]) {
        std::uint64_t impossible = 0;
        for (std::size_t i = 0; i < timeline_.events.size(); ++i) {
            impossible += timeline_.events.kind(i) == EventKind::kNone ? 1 : 0;
        }
        timeline_.damage.notes.push_back(impossible_events_note(impossible));
    }
}

void TimelineBuilder::count_missing() {
    if (sequences_.empty()) {
        return;
    }
    // Sequence numbers start at 1. They skip numbers only before a checkpoint and where recording
    // was stopped; all other missing numbers are lost events.
    std::uint64_t missing = 0;
    std::uint64_t before = 0;
    for (std::size_t run = 0; run < sequences_.runs().size(); ++run) {
        const auto& [begin, first] = sequences_.runs()[run];
        const EventKind kind = timeline_.events.kind(begin);
        const bool jumps =
            kind == EventKind::kCheckpointBegin || kind == EventKind::kRecordingStarted;
        missing += jumps ? 0 : first - before - 1;
        before = sequences_.last_of(run);
    }
    if (missing != 0) {
        timeline_.damage.notes.push_back(
            missing_numbers_note(missing, sequences_.size() + missing));
    }
}

// Applies the durations that arrived as separate events, because their calls are recorded before
// they are executed.
void TimelineBuilder::add_call_times() {
    if (!any_of({EventKind::kCallTime})) {
        return;
    }
    std::map<EventIndex, std::uint32_t> times(timeline_.durations.begin(),
                                              timeline_.durations.end());
    for (const EventIndex remark : remarks_) {
        const Event event = timeline_.events[remark];
        const EventIndex call =
            event.kind == EventKind::kCallTime ? sequences_.find(event.address) : kNoEvent;
        if (call != kNoEvent) {
            times[call] =
                static_cast<std::uint32_t>(std::min<std::uint64_t>(event.size_bytes, kUnknown32));
        }
    }
    std::erase_if(times, [](const auto& time) { return time.second == 0; });
    timeline_.durations.assign(times.begin(), times.end());
}

void TimelineBuilder::pair() {
    if (!pairing_) {
        pairing_.emplace(&timeline_);
    }
    pairing_->advance();  // pairs the remaining events, or all
    pairing_->finish();
    pairing_.reset();
}

Timeline TimelineBuilder::finish() {
    put_in_order();
    check_references();
    count_missing();
    add_call_times();
    timeline_.pools = pool_identities(timeline_.facts);
    sequences_ = {};
    if (any_of({EventKind::kRecordingStopped,
                EventKind::kRecordingStarted,
                EventKind::kCheckpointBegin,
                EventKind::kCheckpointEnd})) {
        forget_pairs();
        find_recording_spans(&timeline_, remarks_);
    }
    if (any_of({EventKind::kRangeBegin, EventKind::kRangeEnd})) {
        find_phases(&timeline_, remarks_);
    }
    pair();
    // Must follow pair(): the balance of a gap identifies blocks by their recorded times.
    timeline_.events.keep_times_in_order();
    if (any_of({EventKind::kBlockLabel})) {
        label_blocks(&timeline_);
    }
    if (timeline_.damage.notes.size() > kMaxNotes) {
        timeline_.damage.notes.resize(kMaxNotes);
    }
    return std::move(timeline_);
}

}  // namespace fragtrace::analyzer
