#include "analyzer/report/json/json_run.h"

#include "analyzer/model/phase_index.h"
#include "analyzer/model/unknown_segments.h"
#include "analyzer/trace/describe_event.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

using Json = nlohmann::ordered_json;

Json side_json(const Analysis& analysis, const SideMemory& memory) {
    Json holders = Json::array();
    for (const auto& [label, bytes] : side_holders(analysis, memory)) {
        holders.push_back({{"label", label}, {"bytes", bytes}});
    }
    return {{"peak_bytes", memory.peak_bytes},
            {"allocations", memory.allocations},
            {"holders", holders}};
}

Json gaps_json(const Timeline& timeline) {
    const auto time_of = [&timeline](EventIndex event) {
        return timeline.events.empty()
                   ? std::uint64_t{0}
                   : timeline.events[std::min<std::size_t>(event, timeline.events.size() - 1)]
                         .time_ns;
    };
    Json rows = Json::array();
    for (const RecordingGap& gap : timeline.gaps) {
        rows.push_back({{"from_ns", gap.begin == 0 ? 0 : time_of(gap.begin)},
                        {"to_ns", time_of(gap.end)},
                        {"freed", gap.freed},
                        {"freed_bytes", gap.freed_bytes},
                        {"made", gap.made},
                        {"made_bytes", gap.made_bytes},
                        {"events_left_out", gap.left_out}});
    }
    return rows;
}

}  // namespace

Json stack_json(const Analysis& analysis, OriginId origin) {
    Json stack = Json::array();
    for (const Frame& frame : analysis.symbols->frames(origin)) {
        stack.push_back({{"function", frame.function},
                         {"file", frame.file},
                         {"line", frame.line},
                         {"module", frame.module},
                         {"kind", frame.kind == Frame::Kind::kPython ? "python" : "native"}});
    }
    return stack;
}

std::string phase_name(const Analysis& analysis, EventIndex event) {
    return analysis.phases ? analysis.phases->name_of(event) : std::string();
}

std::uint64_t retry_ns(const Analysis& analysis, EventIndex event) {
    const auto& retries = analysis.run.retries;
    const auto found = std::lower_bound(
        retries.begin(), retries.end(), event, [](const RetryCost& retry, EventIndex wanted) {
            return retry.event < wanted;
        });
    return found != retries.end() && found->event == event ? found->driver_ns : 0;
}

Json phases_json(const Analysis& analysis) {
    Json rows = Json::array();
    const auto if_shown = [known = shows_reserved(analysis.timeline.facts)](std::uint64_t figure) {
        return known ? Json(figure) : Json(nullptr);
    };
    for (const PhaseTotals& phase : analysis.run.phases) {
        rows.push_back({{"name", phase.name},
                        {"kind", range_kind_name(phase.kind)},
                        {"library", phase.library},
                        {"count", phase.count},
                        {"time_ns", phase.time_ns},
                        {"peak_allocated_bytes", phase.figures.peak_allocated},
                        {"peak_reserved_bytes", if_shown(phase.figures.peak_reserved)},
                        {"left_bytes", phase.figures.left_bytes},
                        {"driver_allocs", if_shown(phase.driver_allocs)},
                        {"driver_ns", if_shown(phase.driver_ns)},
                        {"retries", if_shown(phase.retries)},
                        {"ooms", phase.ooms}});
    }
    return rows;
}

Json calls_json(const Analysis& analysis) {
    Json rows = Json::array();
    for (const CallCosts& call : analysis.run.calls) {
        rows.push_back({{"kind", kind_name(call.kind)},
                        {"count", call.count},
                        {"total_ns", call.total_ns},
                        {"max_ns", call.max_ns}});
    }
    return rows;
}

Json memory_json(const Analysis& analysis) {
    const RunMetrics& run = analysis.run;
    return {{"pinned", side_json(analysis, run.pinned)},
            {"managed", side_json(analysis, run.managed)},
            {"arrays", run.arrays},
            {"arrays_of_unknown_size", run.arrays_unknown},
            {"stream_ordered_allocations", run.stream_ordered},
            {"imports", run.imports},
            {"graph_peak_bytes", run.graph_peak_bytes},
            {"modules", run.modules}};
}

Json failed_call_json(const Analysis& analysis, const CallOutOfMemory& call) {
    const Event& event = analysis.timeline.events[call.event];
    // In an import the call may be an allocation, whose size is not shown.
    const bool import = analysis.timeline.facts.contains("import");
    const auto if_shown = [import](auto figure) { return import ? Json(nullptr) : Json(figure); };
    const auto if_known = [&call, import](auto figure) {
        return import || !call.device_known ? Json(nullptr) : Json(figure);
    };
    return {{"time_ns", event.time_ns},
            {"event", call.event},
            {"device", event.device},
            {"requested_bytes", if_shown(0)},
            {"rounded_bytes", if_shown(0)},
            {"verdict", "not_judged"},
            {"requester", call.function},
            {"phase", phase_name(analysis, call.event)},
            {"despite_free_memory", if_known(call.free_bytes != 0)},
            {"largest_free_bytes", if_known(call.largest_free_bytes)},
            {"free_bytes", if_known(call.free_bytes)},
            {"device_free_bytes",
             call.device_free_bytes ? if_shown(*call.device_free_bytes) : Json(nullptr)},
            {"allocated_bytes", call.device_known ? Json(call.allocated_bytes) : Json(nullptr)},
            {"reserved_bytes", if_known(call.reserved_bytes)},
            {"stack", stack_json(analysis, event.origin)}};
}

Json failed_requests_json(const Analysis& analysis, const DeviceAnalysis& device) {
    Json rows = Json::array();
    for (const RecordedTrouble& trouble : device.recorded_troubles) {
        const Event& event = analysis.timeline.events[trouble.event];
        if (event.kind == EventKind::kCallOutOfMemory) {
            continue;  // see failed_call_json()
        }
        rows.push_back({{"time_ns", event.time_ns},
                        {"event", trouble.event},
                        {"device", device.device},
                        {"requested_bytes", event.size_bytes},
                        {"rounded_bytes", nullptr},
                        {"verdict", "not_judged"},
                        {"requester", "pool"},
                        {"phase", phase_name(analysis, trouble.event)},
                        {"despite_free_memory", nullptr},
                        {"largest_free_bytes", nullptr},
                        {"free_bytes", nullptr},
                        {"device_free_bytes", nullptr},
                        {"allocated_bytes", nullptr},
                        {"reserved_bytes", nullptr},
                        {"stack", stack_json(analysis, event.origin)}});
    }
    return rows;
}

Json recording_json(const Analysis& analysis) {
    const Timeline& timeline = analysis.timeline;
    return {{"gaps", gaps_json(timeline)},
            {"checkpoints", timeline.checkpoints.size()},
            {"events_after_gaps", timeline.damage.after_gap},
            {"events_with_cut_stacks", analysis.run.cut_stacks},
            {"stacks_without_order", analysis.symbols->stacks_without_order()}};
}

Json symbols_json(const Analysis& analysis) {
    return {{"unnamed_addresses", analysis.symbols->unnamed_addresses()},
            {"notes", analysis.symbols->notes()},
            {"notes_left_out", analysis.symbols->notes_left_out()}};
}

Json facts_json(const Analysis& analysis) {
    Json facts = Json::object();
    for (const auto& [key, value] : analysis.timeline.facts) {
        if (!key.starts_with("text.")) {
            facts[key] = value;
        }
    }
    return facts;
}

}  // namespace fragtrace::analyzer
