// The format of Perfetto: memory over time as counters; phases, steps, blocks and a profile as
// slices; failed requests as instants.
#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/export/chrome_trace.h"
#include "analyzer/export/formats.h"
#include "analyzer/export/perfetto_blocks.h"
#include "analyzer/export/perfetto_failures.h"
#include "analyzer/export/perfetto_slices.h"
#include "analyzer/model/request_outcomes.h"
#include "analyzer/report/text/text_parts.h"
#include "analyzer/support/output_file.h"
#include "analyzer/support/terminal.h"
#include "analyzer/support/units.h"
#include "analyzer/trace/symbols.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

namespace fragtrace::analyzer {
namespace {

using Track = PerfettoFile::Track;
using Text = PerfettoFile::Text;
using Arguments = std::vector<PerfettoFile::Argument>;

// The largest free block is searched so many times in a run, because each search visits all blocks.
constexpr std::size_t kLargestFreeSamples = 1024;

struct Counter {
    Track track = 0;
    std::optional<std::uint64_t> last;
};

struct DeviceTracks {
    const DeviceAnalysis* device = nullptr;
    Track track = 0;
    Track failures = 0;  // made when the first request fails
    Counter allocated;
    Counter requested;
    Counter active;
    Counter reserved;
    Counter outside;
    Counter others;
    Counter largest_free;
    std::map<EventIndex, const Diagnosis*> diagnoses;
};

class Exporter {
  public:
    Exporter(const Analysis& analysis, const ExportOptions& options, PerfettoFile* file)
        : analysis_(analysis), timeline_(analysis.timeline), options_(options), file_(*file) {}

    void write(const std::optional<ChromeTrace>& profile) {
        add_process();
        for (const DeviceAnalysis& device : analysis_.devices) {
            add_device(device);
        }
        write_phases();
        write_events();
        if (profile) {
            write_profile(*profile);
        }
    }

    // Slices that overlap in more ways than there are tracks.
    [[nodiscard]] std::uint64_t left_out() const { return left_out_; }

  private:
    [[nodiscard]] std::uint64_t at(std::uint64_t time_ns) const {
        return std::min(timeline_.start_unix_ns, kMostTime_ns) + std::min(time_ns, kMostTime_ns);
    }

    [[nodiscard]] std::uint64_t time_of(EventIndex event) const {
        return at(timeline_.events[event].time_ns);
    }

    void add_process() {
        const std::string file_name =
            printable(std::filesystem::path(timeline_.path).filename().string());
        if (timeline_.pid == 0) {  // a snapshot does not name its process
            process_ = file_.add_track(0, file_name);
            return;
        }
        const std::string program =
            std::filesystem::path(timeline_.fact("executable")).filename().string();
        PerfettoFile::Process process;
        process.pid = timeline_.pid;
        process.name = program.empty() ? file_name : printable(program);
        process.command_line = printable(timeline_.fact("command_line"));
        if (timeline_.rank >= 0) {
            process.labels.push_back(fmt::format("rank {}", timeline_.rank));
        }
        if (const std::string host = timeline_.fact("host"); !host.empty()) {
            process.labels.push_back(printable("host " + host));
        }
        if (const std::string part = part_text(timeline_); !part.empty()) {
            process.labels.push_back(part);
        }
        process_ = file_.add_process(process);
    }

    Track thread(std::uint32_t tid) {
        Track& track = threads_[tid];
        if (track == 0) {
            track = tid == 0             ? file_.add_track(process_, "thread not known")
                    : timeline_.pid == 0 ? file_.add_track(process_, fmt::format("thread {}", tid))
                                         : file_.add_thread(timeline_.pid, tid);
        }
        return track;
    }

    void add_device(const DeviceAnalysis& device) {
        DeviceTracks& tracks = devices_.emplace_back();
        const std::string gpu = fmt::format("GPU {}", device.device);
        tracks.device = &device;
        tracks.track = file_.add_track(process_, printable(gpu + ": " + device.name));
        const auto counter = [&](const char* what) {
            return Counter{file_.add_counter(tracks.track, gpu + " " + what), {}};
        };
        tracks.allocated = counter("allocated");
        if (segments_known(device.recorded)) {
            tracks.reserved = counter("reserved");
            tracks.active = counter("active");
        }
        if (requested_known(device.recorded)) {
            tracks.requested = counter("requested");
        }
        if (!segments_known(device.recorded)) {
            write_steps(device, tracks.track, gpu);
            return;
        }
        tracks.outside = counter("outside the pool, of this process");
        tracks.others = counter("context, libraries and other processes");
        tracks.largest_free = counter("largest free block (sampled)");
        for (const Diagnosis& diagnosis : device.diagnoses) {
            tracks.diagnoses[diagnosis.trouble.event] = &diagnosis;
        }
        write_steps(device, tracks.track, gpu);
    }

    // ---- phases and steps ----

    void write_phases() {
        std::map<std::uint32_t, std::vector<PerfettoSlice>> by_thread;
        const Text categories[] = {
            file_.category("mark"), file_.category("NVTX"), file_.category("cell")};
        for (const Phase& phase : timeline_.phases) {
            const auto kind = static_cast<std::size_t>(phase.kind);
            by_thread[phase.thread].push_back(
                {phase.begin,
                 std::max(phase.begin, phase.end),
                 file_.name(printable(text_of(timeline_, phase.name))),
                 kind < std::size(categories) ? categories[kind] : Text{}});
        }
        for (const auto& [tid, slices] : by_thread) {
            const Track track = thread(tid);
            write_event_slices(slices, [&](std::size_t lane) {
                return lane == 0 ? track : file_.add_track(track, "ranges that do not nest");
            });
        }
    }

    void write_steps(const DeviceAnalysis& device, Track parent, const std::string& gpu) {
        const Iterations& iterations = device.held.iterations;
        if (!iterations.found() || timeline_.events.empty()) {
            return;
        }
        std::vector<PerfettoSlice> slices;
        const Text category = file_.category("step");
        for (std::size_t i = 0; i < iterations.begins.size(); ++i) {
            const EventIndex begin = iterations.begins[i];
            const std::uint64_t end = i + 1 < iterations.begins.size()
                                          ? iterations.begins[i + 1]
                                          : timeline_.events.size() - 1;
            slices.push_back({begin, end, file_.name(fmt::format("step {}", i + 1)), category});
        }
        write_event_slices(slices, [&](std::size_t) {
            return file_.add_track(parent,
                                   gpu + (iterations.source == Iterations::Source::kPhases
                                              ? " steps, from phases"
                                              : " steps, from recurring requests"));
        });
    }

    // `begin` and `end` of these slices are events.
    template <typename AddLane>
    void write_event_slices(const std::vector<PerfettoSlice>& slices, AddLane add_lane) {
        left_out_ += write_slices(
            &file_,
            slices,
            [this](std::uint64_t event) -> std::optional<std::uint64_t> {
                if (event >= timeline_.events.size()) {
                    return std::nullopt;  // open at the end of the trace
                }
                return time_of(static_cast<EventIndex>(event));
            },
            add_lane);
    }

    // ---- counters, failed requests and blocks: one walk over all events ----

    void write_events() {
        RecordedState state(timeline_);
        RequestOutcomes outcomes([&state](DeviceId id) { return state.has_block_layer(id); });
        std::vector<OriginTexts> texts(options_.blocks ? timeline_.origins.size() + 1 : 0);
        std::deque<BlockSlices> blocks;
        if (options_.blocks) {
            for (const DeviceTracks& tracks : devices_) {
                const DeviceId device = tracks.device->device;
                state.watch(
                    device,
                    &blocks.emplace_back(analysis_, device, tracks.track, &texts, &now_, &file_));
            }
        }
        const std::size_t count = timeline_.events.size();
        const std::size_t stride = std::max<std::size_t>(count / kLargestFreeSamples, 1);
        bool in_checkpoint = false;
        Progress progress("writing events");
        for (EventIndex i = 0; i < count; ++i) {
            progress.show_sometimes(i, count);
            const Event event = timeline_.events[i];
            // A checkpoint lists live memory with the times of its allocations. The list is
            // complete at its end, so the counters change only there.
            in_checkpoint = event.kind == EventKind::kCheckpointBegin ||
                            (in_checkpoint && event.kind != EventKind::kCheckpointEnd);
            if (!in_checkpoint || event.kind == EventKind::kCheckpointBegin) {
                now_ = std::max(now_, at(event.time_ns));
            }
            const RequestOutcome outcome = outcomes.visit(i, event);
            state.advance();
            if (!in_checkpoint || i + 1 == count) {
                for (DeviceTracks& tracks : devices_) {
                    count_memory(state, i % stride == 0 || i + 1 == count, &tracks);
                }
            }
            if (outcome != RequestOutcome::kNone) {
                write_failure(i, event, outcome, state);
            }
            if (event.kind == EventKind::kMark) {
                file_.instant(thread(thread_of(event)),
                              now_,
                              file_.name(printable(text_of(timeline_, event.size_bytes))));
            }
        }
    }

    [[nodiscard]] std::uint32_t thread_of(const Event& event) const {
        return event.origin < timeline_.origins.size() ? timeline_.origins[event.origin].thread : 0;
    }

    void set(Counter* counter, std::uint64_t value) {
        if (counter->last != value) {
            counter->last = value;
            file_.count(counter->track, now_, value);
        }
    }

    void count_memory(const RecordedState& state, bool search, DeviceTracks* tracks) {
        const DeviceId device = tracks->device->device;
        const MemoryTotals& totals = state.totals(device);
        set(&tracks->allocated, totals.allocated);
        if (requested_known(tracks->device->recorded)) {
            set(&tracks->requested, totals.requested);
        }
        if (!segments_known(tracks->device->recorded)) {
            return;
        }
        set(&tracks->reserved, totals.reserved);
        set(&tracks->active, totals.active());
        set(&tracks->outside, totals.other);
        if (const MemorySample& sample = state.sample(device); sample.event != kNoEvent) {
            const std::uint64_t known = sample.free_bytes + sample.own_bytes;
            set(&tracks->others, sample.total_bytes - std::min(sample.total_bytes, known));
        }
        if (search) {
            set(&tracks->largest_free, state.largest_free_bytes(device));
        }
    }

    void write_failure(EventIndex index,
                       const Event& event,
                       RequestOutcome outcome,
                       const RecordedState& state) {
        const auto tracks =
            std::find_if(devices_.begin(), devices_.end(), [&](const DeviceTracks& one) {
                return one.device->device == event.device;
            });
        if (tracks == devices_.end()) {
            return;
        }
        if (tracks->failures == 0) {
            tracks->failures = file_.add_track(
                tracks->track, fmt::format("GPU {} out of memory and retries", event.device));
        }
        Arguments arguments;
        if (outcome != RequestOutcome::kCallOutOfMemory && event.size_bytes != kUnknown64) {
            arguments.push_back({"requested_bytes", event.size_bytes});
        }
        if (const auto found = tracks->diagnoses.find(index); found != tracks->diagnoses.end()) {
            add_diagnosis(analysis_, *tracks->device, *found->second, &arguments);
        }
        arguments.push_back({"requested by", printable(analysis_.symbols->describe(event.origin))});
        arguments.push_back({"event", std::uint64_t{index}});
        file_.instant(tracks->failures, now_, file_.name(outcome_text(outcome)), arguments);
        if (segments_known(tracks->device->recorded)) {
            set(&tracks->largest_free, state.largest_free_bytes(event.device));
        }
    }

    // ---- a profile ----

    void write_profile(const ChromeTrace& profile) {
        std::map<std::string, Track> groups;  // by pid
        const auto name_in = [](const std::map<std::string, std::string>& names,
                                const std::string& key) {
            const auto found = names.find(key);
            return found == names.end() ? std::string() : found->second;
        };
        for (const ChromeTrack& track : profile.tracks) {
            Track parent = 0;
            std::string name = name_in(profile.thread_names, track.pid + " " + track.tid);
            name = name.empty() ? fmt::format("thread {}", track.tid) : name;
            if (const auto own = own_thread(track)) {
                // Slices of two sources do not nest exactly, so they get different tracks.
                parent = thread(*own);
                name.insert(0, "profiler: ");
            } else {
                Track& group = groups[track.pid];
                if (group == 0) {
                    const std::string process = name_in(profile.process_names, track.pid);
                    const std::string label = name_in(profile.process_labels, track.pid);
                    group = file_.add_track(0,
                                            "profiler: " + (process.empty() ? track.pid : process) +
                                                (label.empty() ? "" : " " + label));
                }
                parent = group;
            }
            std::vector<PerfettoSlice> slices;
            slices.reserve(track.slices.size());
            for (const ChromeSlice& slice : track.slices) {
                slices.push_back({slice.begin_ns,
                                  slice.end_ns,
                                  file_.name(profile.texts[slice.name]),
                                  file_.category(profile.texts[slice.category])});
            }
            left_out_ += write_slices(
                &file_,
                slices,
                [](std::uint64_t time) { return std::optional(time); },
                [&](std::size_t) { return file_.add_track(parent, name); });
        }
    }

    // The thread of the recorded process that a track of the profile belongs to.
    [[nodiscard]] std::optional<std::uint32_t> own_thread(const ChromeTrack& track) const {
        const bool number = !track.tid.empty() && track.tid.size() < 10 &&
                            track.tid.find_first_not_of("0123456789") == std::string::npos;
        if (timeline_.pid == 0 || track.pid != std::to_string(timeline_.pid) || !number) {
            return std::nullopt;
        }
        return static_cast<std::uint32_t>(std::stoul(track.tid));
    }

    const Analysis& analysis_;
    const Timeline& timeline_;
    const ExportOptions& options_;
    PerfettoFile& file_;
    Track process_ = 0;
    std::map<std::uint32_t, Track> threads_;  // by tid
    std::vector<DeviceTracks> devices_;
    std::uint64_t now_ = 0;
    std::uint64_t left_out_ = 0;
};

// One line about the slices that were read from the profile.
std::string profile_note(const std::string& path,
                         const ChromeTrace& profile,
                         const Timeline& timeline) {
    std::string skipped;
    for (const auto& [kind, count] : profile.skipped) {
        skipped += fmt::format("{}{} {}", skipped.empty() ? "" : ", ", format_count(count), kind);
    }
    std::string note = fmt::format("{}: {} on {} added; skipped: {}",
                                   path,
                                   format_counted(profile.slices, "slice", "slices"),
                                   format_counted(profile.tracks.size(), "track", "tracks"),
                                   skipped.empty() ? "nothing" : skipped);
    const std::uint64_t start_ns = timeline.start_unix_ns;
    const std::uint64_t length_ns = timeline.events.empty() ? 0 : timeline.events.back().time_ns;
    if (profile.last_ns < start_ns || profile.first_ns > start_ns + length_ns) {
        note += fmt::format(
            "; it does not overlap the recording: it {} {} {}",
            profile.last_ns < start_ns ? "ends" : "begins",
            format_duration(profile.last_ns < start_ns ? start_ns - profile.last_ns
                                                       : profile.first_ns - start_ns - length_ns),
            profile.last_ns < start_ns ? "before" : "after");
    }
    return note;
}

}  // namespace

Status export_perfetto(const Analysis& analysis, const ExportOptions& options) {
    const Timeline& timeline = analysis.timeline;
    const std::uint64_t start_ns = std::min(timeline.start_unix_ns, kMostTime_ns);
    std::optional<ChromeTrace> profile;
    if (!options.profile.empty()) {
        if (start_ns == 0) {
            return Error{ErrorCode::kUsage,
                         fmt::format("{}: its times of day are not known, so --with cannot place "
                                     "a profile beside it. Omit --with.",
                                     timeline.path)};
        }
        auto read = read_chrome_trace(options.profile);
        if (!read) {
            return read.error();
        }
        profile = std::move(*read);
    }
    std::uint64_t left_out = 0;
    Status written = write_output(options.output, [&](std::FILE* stream) -> Status {
        PerfettoFile file(stream, start_ns);
        Exporter exporter(analysis, options, &file);
        exporter.write(profile);
        file.finish();
        left_out = exporter.left_out();
        return Ok{};
    });
    if (!written) {
        return written;
    }
    if (profile) {
        print_to_stderr(fmt::format("fraganalyze: {}\n",
                                    printable(profile_note(options.profile, *profile, timeline))));
    }
    if (left_out != 0) {
        print_to_stderr(
            fmt::format("fraganalyze: {} left out: more than {} overlap without nesting\n",
                        format_counted(left_out, "slice", "slices"),
                        kMostLanes));
    }
    return written;
}

}  // namespace fragtrace::analyzer
