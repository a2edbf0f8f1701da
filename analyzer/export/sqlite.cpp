// A database with everything that is known about a recording.
#include "analyzer/analysis/memory_lives.h"
#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/export/event_sizes.h"
#include "analyzer/export/formats.h"
#include "analyzer/export/sqlite_details.h"
#include "analyzer/export/sqlite_failures.h"
#include "analyzer/export/sqlite_file.h"
#include "analyzer/export/sqlite_keys.h"
#include "analyzer/export/sqlite_schema.h"
#include "analyzer/export/stack_weights.h"
#include "analyzer/model/library_ranges.h"
#include "analyzer/report/text/text_source.h"
#include "analyzer/support/output_file.h"
#include "analyzer/support/terminal.h"
#include "analyzer/trace/describe_event.h"
#include "analyzer/trace/process_end.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {
namespace {

class Database {
  public:
    Database(const Analysis& analysis, SqliteFile* file)
        : analysis_(analysis), timeline_(analysis.timeline), file_(*file), keys_(analysis) {}

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
        add_failures(analysis_, keys_, &file_);
        SqliteRows(&file_, "moment")
            .add(unless(kNoEvent, moment),
                 moment == kNoEvent ? std::nullopt : std::optional(keys_.time_of(moment)));
        add_meta();
        file_.run(kSqliteIndexesAndViews);
    }

  private:
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
        rows.add("events_read", timeline_.events_read());
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
            gaps.add(keys_.event_if_any(gap.begin),
                     keys_.event_if_any(gap.end),
                     gap.freed,
                     gap.freed_bytes,
                     gap.made,
                     gap.made_bytes,
                     gap.left_out);
        }
    }

    void add_stacks() {
        using Key = std::tuple<std::string, std::string, std::uint32_t, std::string, bool>;
        std::map<Key, std::size_t> numbers;
        SqliteRows stacks(&file_, "stacks");
        SqliteRows frames(&file_, "frames");
        SqliteRows places(&file_, "stack_frames");
        Symbolizer* symbols = analysis_.symbols.get();
        for (std::size_t stack = 0; stack < keys_.stacks().origins().size(); ++stack) {
            const OriginId origin = keys_.stacks().origins()[stack];
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
            std::optional<std::uint32_t> duration_ns;
            if (duration != timeline_.durations.end() && duration->first == i) {
                duration_ns = duration->second;
                ++duration;
            }
            const bool known = event.origin != 0 && event.origin < timeline_.origins.size();
            const std::string flags = flag_words(event);
            rows.add(i,
                     event.time_ns,
                     keys_.device_if_any(event),
                     kinds[static_cast<std::uint8_t>(event.kind)].c_str(),
                     sizes.address ? std::optional(SqliteAddress{*sizes.address}) : std::nullopt,
                     sizes.bytes,
                     sizes.requested,
                     keys_.stream_if_any(event.stream),
                     unless(0u, timeline_.event_pools.at(i, &pool_cursor)),
                     known ? std::optional(timeline_.origins[event.origin].thread) : std::nullopt,
                     keys_.stack_of(event.origin),
                     duration_ns,
                     keys_.phase_of(i),
                     keys_.step_of(event.device, i),
                     keys_.event_if_any(timeline_.partner[i]),
                     if_any(flags),
                     event_details(timeline_, event));
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
                     keys_.event_if_any(phase.end),
                     keys_.time_if_any(phase.begin),
                     keys_.time_if_any(phase.end));
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
            [this](OriginId origin) { return keys_.stack_of(origin); },
            LifeClock::kEvents);
        const BlockLives& blocks = lives.blocks;
        SqliteRows block_rows(&file_, "blocks");
        for (std::size_t i = 0; i < blocks.size(); ++i) {
            block_rows.add(std::nullopt,
                           id,
                           SqliteAddress{blocks.address[i]},
                           blocks.size_bytes[i],
                           blocks.requested_bytes[i],
                           keys_.stream_if_any(blocks.stream[i]),
                           blocks.stack[i],
                           blocks.start_ns[i],
                           keys_.event_if_any(blocks.freed_ns[i]),
                           keys_.event_if_any(blocks.end_ns[i]),
                           keys_.time_if_any(blocks.start_ns[i]),
                           keys_.time_if_any(blocks.freed_ns[i]),
                           keys_.time_if_any(blocks.end_ns[i]),
                           keys_.step_of(id, blocks.start_ns[i]),
                           keys_.step_of(id, blocks.freed_ns[i]));
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
                             keys_.stream_if_any(segment.stream),
                             segment.small,
                             segment.start_ns,
                             keys_.event_if_any(segment.end_ns),
                             keys_.time_if_any(segment.start_ns),
                             keys_.time_if_any(segment.end_ns));
        }
        SqliteRows outside(&file_, "outside");
        for (std::size_t i = 0; i < lives.others.time_ns.size(); ++i) {
            const std::uint64_t event = lives.others.time_ns[i];
            outside.add(id, event, keys_.time_if_any(event), lives.others.bytes[i]);
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
                     keys_.event_if_any(end),
                     keys_.time_if_any(begins[i]),
                     keys_.time_if_any(end));
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

    const Analysis& analysis_;
    const Timeline& timeline_;
    SqliteFile& file_;
    SqliteKeys keys_;
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
