// A database with everything that is known about a recording.
#include "analyzer/analysis/memory_lives.h"
#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/analysis/verdict/verdict_text.h"
#include "analyzer/export/event_sizes.h"
#include "analyzer/export/formats.h"
#include "analyzer/export/sqlite_file.h"
#include "analyzer/export/sqlite_schema.h"
#include "analyzer/export/stack_numbers.h"
#include "analyzer/export/stack_weights.h"
#include "analyzer/model/library_ranges.h"
#include "analyzer/report/text/conclusion_text.h"
#include "analyzer/report/text/text_source.h"
#include "analyzer/support/output_file.h"
#include "analyzer/support/terminal.h"
#include "analyzer/trace/describe_event.h"
#include "analyzer/trace/process_end.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {
namespace {

using Json = nlohmann::ordered_json;

// NULL for an empty text.
std::optional<std::string_view> if_any(const std::string& text) {
    return text.empty() ? std::nullopt : std::optional<std::string_view>(text);
}

template <typename Number>
std::optional<Number> unless(Number nothing, Number number) {
    return number == nothing ? std::nullopt : std::optional(number);
}

// ---- events -------------------------------------------------------------------------------------

Json detail(const Timeline& timeline, ColumnFormat format, std::uint64_t value) {
    switch (format) {
        case ColumnFormat::kNothing:
            break;
        case ColumnFormat::kBytes:
        case ColumnFormat::kNumber:
        case ColumnFormat::kNumberIfAny:
            return value == kUnknown64 ? Json(nullptr) : Json(value);
        case ColumnFormat::kHex:
            return fmt::format("{:#x}", value);
        case ColumnFormat::kText:
            return text_of(timeline, value);
        case ColumnFormat::kCudaEvent:
            return (value & kDeferredEvent) != 0
                       ? fmt::format("deferred:{}", value & ~kDeferredEvent)
                       : fmt::format("{:#x}", value);
        case ColumnFormat::kFraction:
            return std::bit_cast<double>(value);
        case ColumnFormat::kBeginEnd:
            return value != 0 ? "begin" : "end";
        case ColumnFormat::kRangeKind:
            return range_kind_name(static_cast<RangeKind>(value));
    }
    return nullptr;
}

// The values of an event that sizes_of() does not have; null if there are none.
Json details_of(const Timeline& timeline, const Event& event) {
    const EventKindInfo& info = info_of(event.kind);
    if (info.name == nullptr) {  // a kind of a later version, or an event that was left out
        return {{"address", fmt::format("{:#x}", event.address)},
                {"size", event.size_bytes},
                {"extra", event.extra}};
    }
    Json details = nullptr;
    const auto take = [&](const EventColumn& column, std::uint64_t value) {
        const std::string_view key = column.key;
        const bool is_size = key == "bytes" || key == "requested";
        const bool is_address = &column == &info.address && column.format == ColumnFormat::kHex;
        if (column.format != ColumnFormat::kNothing && !is_size && !is_address &&
            (column.format != ColumnFormat::kNumberIfAny || value != 0)) {
            details[std::string(key)] = detail(timeline, column.format, value);
        }
    };
    take(info.address, event.address);
    take(info.size, event.size_bytes);
    take(info.extra, event.extra);
    return details;
}

class Database {
  public:
    Database(const Analysis& analysis, SqliteFile* file)
        : analysis_(analysis), timeline_(analysis.timeline), file_(*file), stacks_(timeline_) {
        for (const DeviceAnalysis& device : analysis.devices) {
            iterations_[device.device] = &device.held.iterations;
        }
    }

    void write(EventIndex moment) {
        file_.run(kSqliteTables);
        add_facts();
        add_names();
        add_stacks();
        add_events();
        add_phases();
        for (const DeviceAnalysis& device : analysis_.devices) {
            add_device(device);
            add_lives(device);
            add_steps(device);
            add_holders(device);
        }
        add_failures();
        SqliteRows(&file_, "moment")
            .add(unless(kNoEvent, moment),
                 moment == kNoEvent ? std::nullopt : std::optional(time_of(moment)));
        add_meta();
        file_.run(kSqliteIndexesAndViews);
    }

  private:
    [[nodiscard]] std::uint64_t time_of(EventIndex event) const {
        return timeline_.events[event].time_ns;
    }

    // For ends that may never come, and may be the number of events.
    [[nodiscard]] std::optional<std::uint64_t> event_if_any(std::uint64_t event) const {
        return event < timeline_.events.size() ? std::optional(event) : std::nullopt;
    }

    [[nodiscard]] std::optional<std::uint64_t> time_if_any(std::uint64_t event) const {
        return event < timeline_.events.size()
                   ? std::optional(time_of(static_cast<EventIndex>(event)))
                   : std::nullopt;
    }

    [[nodiscard]] std::optional<StreamId> stream_if_any(StreamId stream) const {
        return stream < timeline_.streams.size() ? std::optional(stream) : std::nullopt;
    }

    [[nodiscard]] std::optional<std::uint64_t> step_of(DeviceId device, std::uint64_t event) const {
        const Iterations* iterations = iterations_[device];
        if (iterations == nullptr || event >= timeline_.events.size()) {
            return std::nullopt;
        }
        return unless(std::size_t{0}, iterations->of(static_cast<EventIndex>(event)));
    }

    [[nodiscard]] std::optional<std::uint32_t> phase_of(EventIndex event) const {
        return analysis_.phases ? unless(PhaseIndex::kNone, analysis_.phases->phase_of(event))
                                : std::nullopt;
    }

    void add_meta() {
        SqliteRows rows(&file_, "meta");
        rows.add("fragtrace_version", FRAGTRACE_VERSION);
        rows.add("schema_version", kSqliteSchemaVersion);
        rows.add("source", timeline_.path);
        rows.add("command_line", if_any(timeline_.fact("command_line")));
        rows.add("process", timeline_.pid);
        rows.add("rank", unless(-1, timeline_.rank));
        rows.add("start_unix_ns", timeline_.start_unix_ns);
        rows.add("ended", ending_name(process_end(timeline_).ending));
        rows.add("events", timeline_.recorded_events());
        rows.add("events_lost", timeline_.damage.events_lost);
        rows.add("bytes_unreadable", timeline_.damage.bytes_unreadable);
        rows.add("numbers_left_out", file_.numbers_left_out());
    }

    void add_facts() {
        SqliteRows rows(&file_, "facts");
        for (const auto& [key, value] : timeline_.facts) {
            if (!key.starts_with("text.")) {
                rows.add(key, value);
            }
        }
    }

    void add_names() {
        SqliteRows streams(&file_, "streams");
        for (std::size_t i = 0; i < timeline_.streams.size(); ++i) {
            streams.add(i, SqliteAddress{timeline_.streams[i]});
        }
        SqliteRows pools(&file_, "pools");
        for (const auto& [number, pool] : timeline_.pools) {
            using Owner = PoolIdentity::Owner;
            const char* const owner = pool.owner == Owner::kPytorch   ? "pytorch"
                                      : pool.owner == Owner::kCuda    ? "cuda"
                                      : pool.owner == Owner::kProgram ? "program"
                                                                      : "unknown";
            pools.add(number, owner, if_any(pool.text));
        }
        SqliteRows gaps(&file_, "gaps");
        for (const RecordingGap& gap : timeline_.gaps) {
            gaps.add(event_if_any(gap.begin),
                     event_if_any(gap.end),
                     gap.freed,
                     gap.freed_bytes,
                     gap.made,
                     gap.made_bytes);
        }
    }

    void add_stacks() {
        using Key = std::tuple<std::string, std::string, std::uint32_t, std::string, bool>;
        std::map<Key, std::size_t> numbers;
        SqliteRows stacks(&file_, "stacks");
        SqliteRows frames(&file_, "frames");
        SqliteRows places(&file_, "stack_frames");
        Symbolizer* symbols = analysis_.symbols.get();
        for (std::size_t stack = 0; stack < stacks_.origins().size(); ++stack) {
            const OriginId origin = stacks_.origins()[stack];
            const std::uint32_t label =
                origin < timeline_.origins.size() ? timeline_.origins[origin].label : 0;
            stacks.add(stack,
                       symbols->describe(origin),
                       label == 0 ? std::nullopt : std::optional(text_of(timeline_, label)));
            int position = 0;
            for (const Frame& frame : symbols->frames(origin)) {
                const bool python = frame.kind == Frame::Kind::kPython;
                const auto [found, is_new] = numbers.try_emplace(
                    {frame.function, frame.file, frame.line, frame.module, python}, numbers.size());
                if (is_new) {
                    frames.add(found->second,
                               frame.function,
                               if_any(frame.file),
                               frame.file.empty() ? std::nullopt : std::optional(frame.line),
                               if_any(frame.module),
                               python ? "python" : "native");
                }
                places.add(stack, position++, found->second);
            }
        }
    }

    void add_events() {
        std::array<std::string, 256> kinds;
        for (std::size_t i = 0; i < kinds.size(); ++i) {
            kinds[i] = kind_name(static_cast<EventKind>(i));
        }
        SqliteRows rows(&file_, "events");
        std::size_t pool_cursor = 0;
        auto duration = timeline_.durations.begin();
        const auto count = static_cast<EventIndex>(timeline_.events.size());
        Progress progress("writing events");
        for (EventIndex i = 0; i < count; ++i) {
            progress.show_sometimes(i, count);
            const Event event = timeline_.events[i];
            const EventSizes sizes = sizes_of(event);
            const Json details = details_of(timeline_, event);
            std::optional<std::uint32_t> duration_ns;
            if (duration != timeline_.durations.end() && duration->first == i) {
                duration_ns = duration->second;
                ++duration;
            }
            const bool known = event.origin != 0 && event.origin < timeline_.origins.size();
            const std::string flags = flag_words(event);
            rows.add(
                i,
                event.time_ns,
                event.device < kMaxDevices ? std::optional(DeviceId{event.device}) : std::nullopt,
                kinds[static_cast<std::uint8_t>(event.kind)].c_str(),
                sizes.address ? std::optional(SqliteAddress{*sizes.address}) : std::nullopt,
                sizes.bytes,
                sizes.requested,
                stream_if_any(event.stream),
                unless(0u, timeline_.event_pools.at(i, &pool_cursor)),
                known ? std::optional(timeline_.origins[event.origin].thread) : std::nullopt,
                stacks_.of(event.origin),
                duration_ns,
                phase_of(i),
                step_of(event.device, i),
                event_if_any(timeline_.partner[i]),
                if_any(flags),
                details.is_null()
                    ? std::nullopt
                    : std::optional(details.dump(-1, ' ', false, Json::error_handler_t::replace)));
        }
    }

    void add_phases() {
        SqliteRows rows(&file_, "phases");
        for (std::size_t i = 0; i < timeline_.phases.size(); ++i) {
            const Phase& phase = timeline_.phases[i];
            const std::string name = text_of(timeline_, phase.name);
            rows.add(i,
                     name,
                     range_kind_name(phase.kind),
                     if_any(std::string(library_of_range(name))),
                     phase.thread,
                     phase.depth,
                     phase.begin,
                     event_if_any(phase.end),
                     time_if_any(phase.begin),
                     time_if_any(phase.end));
        }
    }

    void add_device(const DeviceAnalysis& device) {
        const auto if_known = [&](std::uint64_t bytes) {
            return device.capacity_known ? std::optional(bytes) : std::nullopt;
        };
        const RunFigures& run = device.recorded;
        const auto if_reserved = [&run](std::uint64_t figure) {
            return segments_known(run) ? std::optional(figure) : std::nullopt;
        };
        SqliteRows(&file_, "devices")
            .add(
                device.device,
                if_any(device.name),
                device.virtual_gpu,
                device.script.source == ScriptSource::kBlocks,
                if_known(device.total_bytes),
                if_known(device.others_bytes),
                if_known(device.capacity_bytes),
                unless(std::uint64_t{0}, device.limit_bytes),
                segments_known(run) ? std::optional(std::string_view(device.config)) : std::nullopt,
                requested_known(run) ? std::optional(run.peak_requested) : std::nullopt,
                run.peak_allocated,
                if_reserved(run.peak_active),
                reserved_known(run) ? std::optional(run.peak_reserved) : std::nullopt,
                if_reserved(run.segments_allocated),
                if_reserved(run.segments_freed),
                if_reserved(run.retries),
                run.ooms,
                source_name(device.held.iterations.source));
    }

    void add_lives(const DeviceAnalysis& device) {
        const DeviceId id = device.device;
        MemoryLives lives = memory_lives(
            timeline_,
            id,
            [this](OriginId origin) { return stacks_.of(origin); },
            LifeClock::kEvents);
        const BlockLives& blocks = lives.blocks;
        SqliteRows block_rows(&file_, "blocks");
        for (std::size_t i = 0; i < blocks.size(); ++i) {
            block_rows.add(std::nullopt,
                           id,
                           SqliteAddress{blocks.address[i]},
                           blocks.size_bytes[i],
                           blocks.requested_bytes[i],
                           stream_if_any(blocks.stream[i]),
                           blocks.stack[i],
                           blocks.start_ns[i],
                           event_if_any(blocks.freed_ns[i]),
                           event_if_any(blocks.end_ns[i]),
                           time_if_any(blocks.start_ns[i]),
                           time_if_any(blocks.freed_ns[i]),
                           time_if_any(blocks.end_ns[i]),
                           step_of(id, blocks.start_ns[i]),
                           step_of(id, blocks.freed_ns[i]));
        }
        SqliteRows segment_rows(&file_, "segments");
        if (!segments_known(device.recorded)) {
            return;  // the segments are stand-ins
        }
        for (const SegmentLife& segment : lives.segments) {
            segment_rows.add(std::nullopt,
                             id,
                             SqliteAddress{segment.address},
                             segment.size_bytes,
                             unless(std::uint64_t{0}, segment.page_bytes),
                             unless(0u, lives.pools[segment.pool].number),
                             stream_if_any(segment.stream),
                             segment.small,
                             segment.start_ns,
                             event_if_any(segment.end_ns),
                             time_if_any(segment.start_ns),
                             time_if_any(segment.end_ns));
        }
        SqliteRows outside(&file_, "outside");
        for (std::size_t i = 0; i < lives.others.time_ns.size(); ++i) {
            const std::uint64_t event = lives.others.time_ns[i];
            outside.add(id, event, time_if_any(event), lives.others.bytes[i]);
        }
    }

    void add_steps(const DeviceAnalysis& device) {
        const std::vector<EventIndex>& begins = device.held.iterations.begins;
        SqliteRows rows(&file_, "steps");
        for (std::size_t i = 0; i < begins.size(); ++i) {
            const EventIndex end = i + 1 < begins.size() ? begins[i + 1] : kNoEvent;
            rows.add(device.device,
                     i + 1,
                     begins[i],
                     event_if_any(end),
                     time_if_any(begins[i]),
                     time_if_any(end));
        }
    }

    void add_holders(const DeviceAnalysis& device) {
        SqliteRows kinds(&file_, "holders");
        SqliteRows lines(&file_, "holding_lines");
        for (const Holders& held : device.held.holders) {
            for (const Holding& kind : held.categories) {
                kinds.add(device.device,
                          held.event,
                          held.at_peak,
                          category_name(kind.category),
                          kind.user_category,
                          kind.bytes,
                          kind.blocks,
                          kind.earlier_bytes,
                          kind.old_bytes);
            }
            for (const HoldingLine& line : held.places) {
                lines.add(device.device,
                          held.event,
                          held.at_peak,
                          line.held.label,
                          category_name(line.category),
                          line.user_category,
                          line.held.bytes,
                          line.held.blocks);
            }
        }
    }

    // ---- failures -------------------------------------------------------------------------------

    void add_failures() {
        SqliteRows rows(&file_, "failures");
        SqliteRows culprits(&file_, "culprits");
        for (const DeviceAnalysis& device : analysis_.devices) {
            for (const Diagnosis& diagnosis : device.diagnoses) {
                add_diagnosis(device, diagnosis, &rows, &culprits);
            }
            for (const RecordedTrouble& trouble : device.recorded_troubles) {
                // Failed calls follow below. They request no memory.
                const bool is_call =
                    timeline_.events.kind(trouble.event) == EventKind::kCallOutOfMemory;
                const bool diagnosed = std::any_of(
                    device.diagnoses.begin(), device.diagnoses.end(), [&](const Diagnosis& one) {
                        return one.trouble.event == trouble.event;
                    });
                if (!diagnosed && !is_call) {
                    add_undiagnosed(device, trouble, &rows);
                }
            }
        }
        for (const CallOutOfMemory& call : analysis_.run.call_ooms) {
            const Event event = timeline_.events[call.event];
            rows.add(
                failures_++,
                event.device < kMaxDevices ? std::optional(DeviceId{event.device}) : std::nullopt,
                call.event,
                event.time_ns,
                "call_out_of_memory",
                std::nullopt,
                stacks_.of(event.origin),
                phase_of(call.event),
                step_of(event.device, call.event),
                call.function,
                std::nullopt,
                std::nullopt,
                call.free_bytes != 0,
                std::nullopt,
                call.free_bytes,
                call.largest_free_bytes,
                std::nullopt,
                unless(std::uint64_t{0}, call.device_free_bytes),
                call.allocated_bytes,
                call.reserved_bytes,
                std::nullopt,
                std::nullopt);
        }
    }

    void add_diagnosis(const DeviceAnalysis& device,
                       const Diagnosis& diagnosis,
                       SqliteRows* rows,
                       SqliteRows* culprits) {
        const Verdict& verdict = diagnosis.verdict;
        const EventIndex event = diagnosis.trouble.event;
        const bool retry = diagnosis.trouble.outcome == Outcome::kRetryOk;
        const Culprit culprit = retry ? culprit_of_retry(analysis_, device, diagnosis)
                                      : culprit_of_failure(analysis_, device, diagnosis);
        for (const CulpritGroup& group : group_culprits(analysis_, diagnosis, false)) {
            culprits->add(failures_,
                          group.held.label,
                          group.held_open_bytes,
                          group.held.bytes,
                          group.held.blocks);
        }
        rows->add(
            failures_++,
            device.device,
            event,
            time_of(event),
            retry ? "retry" : "out_of_memory",
            verdict.requested_bytes,
            stacks_.of(timeline_.events[event].origin),
            phase_of(event),
            step_of(device.device, event),
            verdict.requester,
            verdict.id,
            verdict_sentence(verdict, diagnosis.trouble.outcome),
            verdict.despite_free_memory(),
            verdict.rounded_bytes,
            verdict.free_bytes,
            verdict.largest_hole_bytes,
            verdict.largest_free_bytes,
            verdict.device_free_known() ? std::optional(verdict.device_free_bytes) : std::nullopt,
            verdict.allocated_bytes,
            verdict.reserved_bytes,
            retry ? std::optional(diagnosis.released_bytes) : std::nullopt,
            if_any(culprit_text(culprit)));
    }

    void add_undiagnosed(const DeviceAnalysis& device,
                         const RecordedTrouble& trouble,
                         SqliteRows* rows) {
        const Event event = timeline_.events[trouble.event];
        rows->add(failures_++,
                  device.device,
                  trouble.event,
                  event.time_ns,
                  trouble.retry ? "retry" : "out_of_memory",
                  event.size_bytes,
                  stacks_.of(event.origin),
                  phase_of(trouble.event),
                  step_of(device.device, trouble.event),
                  std::nullopt,
                  std::nullopt,
                  std::nullopt,
                  std::nullopt,
                  std::nullopt,
                  std::nullopt,
                  std::nullopt,
                  std::nullopt,
                  std::nullopt,
                  std::nullopt,
                  std::nullopt,
                  std::nullopt,
                  std::nullopt);
    }

    const Analysis& analysis_;
    const Timeline& timeline_;
    SqliteFile& file_;
    StackNumbers stacks_;
    std::array<const Iterations*, kMaxDevices + 1> iterations_ = {};
    std::size_t failures_ = 0;
};

}  // namespace

Status export_sqlite(const Analysis& analysis, const ExportOptions& options) {
    const EventIndex moment = shown_moment(analysis, options);
    return write_output_by_name(options.output, [&](const std::string& name) -> Status {
        SqliteFile file(name);
        Database(analysis, &file).write(moment);
        return file.close(options.output);
    });
}

}  // namespace fragtrace::analyzer
