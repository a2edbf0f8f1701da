// What the view of a job knows about one process: who it is, how it ended, its peaks, its failures,
// who held the memory, and memory over time. It comes from a trace, or from a file that an earlier
// summary was written to (process_summary_json.h); both give the same figures.
//
// Summaries of the same process can be merged (merge_summaries.h). The merge is associative,
// commutative and idempotent, so a job can be reduced in any order, and parts of it twice.
#pragma once

#include "analyzer/analysis/metrics/trace_summary.h"
#include "analyzer/model/job_place.h"
#include "analyzer/trace/process_end.h"
#include "analyzer/trace/symbols.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace fragtrace::analyzer {

// The most of each part that a summary has, in memory and in a file.
inline constexpr std::size_t kMostSummaryLines = 16;
inline constexpr std::size_t kMostSummaryFailures = 4;
inline constexpr std::size_t kMostSummaryReplays = 32;
inline constexpr std::size_t kMostSummaryAncestors = 16;

// Memory that one line held at the peak of reserved memory.
struct LineHolds {
    std::string line = {};
    std::uint64_t bytes = 0;
    std::uint64_t blocks = 0;

    bool operator==(const LineHolds&) const = default;
};

// A memory curve (memory_curve.h) in steps of `unit_bytes`, rounded up. So a value is at most one
// unit too large.
struct CompactCurve {
    std::uint64_t bin_ns = 0;  // 0 = not known
    std::uint64_t unit_bytes = 1;
    std::vector<std::uint16_t> reserved = {};
    std::vector<std::uint16_t> allocated = {};

    bool operator==(const CompactCurve&) const = default;
};

// One out-of-memory of the recorded run, as a report explains it. The texts are final: they come
// from report/text.
struct FailureSummary {
    std::uint64_t time_ns = 0;  // since the start of the trace
    std::uint64_t requested_bytes = 0;
    std::uint64_t allocated_bytes = 0;  // by the pool, at the failure; 0 = not known
    // The card that the rest of the failed step is forecast to need, an estimate (forecast.h). 0 =
    // no forecast.
    std::uint64_t forecast_card_bytes = 0;
    std::string verdict = {};  // Verdict::id; empty = not known
    std::string why = {};      // the verdict in words
    std::string at = {};       // the line of the request
    std::string culprit = {};  // the line to look at first, and what it does
    std::string remedy = {};   // the change, its replayed result and its certainty

    bool operator==(const FailureSummary&) const = default;
};

// One replay of the process, with other settings or on another card.
struct ReplaySummary {
    std::string name = {};
    std::uint64_t total_bytes = 0;  // of the card; 0 = the recorded card
    std::uint64_t ooms = 0;
    std::uint64_t retries = 0;
    std::uint64_t peak_reserved = 0;
    bool usable = true;
    bool recorded = false;   // the settings and the card of the recorded run
    bool gets_past = false;  // past the recorded out-of-memory; later requests are not known
    // Whether the rest of the step that failed is forecast to fit (forecast.h). nullopt = not
    // forecast.
    std::optional<bool> rest_fits = {};
    std::string class_words = {};  // "exact", "at least", ... (row_class.h)

    bool operator==(const ReplaySummary&) const = default;
};

struct ProcessDevice {
    DeviceId device = 0;  // ordinal in the process
    std::string name;
    std::string uuid;                  // empty = not known
    std::uint64_t total_bytes = 0;     // of the card; 0 = not known
    std::uint64_t capacity_bytes = 0;  // least that the pool could have; 0 = not known
    std::uint64_t context_bytes = 0;   // of this process's context; 0 = not known
    RunFigures run;  // ooms: kUnknown64 if the input does not show whether a request failed
    std::uint64_t peak_time_ns = 0;
    std::optional<std::uint64_t> first_oom_ns = {};  // since the start of the trace
    // The first out-of-memory after which the device served no request. nullopt: the program got
    // past all of them.
    std::optional<std::uint64_t> final_oom_ns = {};
    // The first one after which the device served only a few small requests (kFewRequests).
    // nullopt: there is none.
    std::optional<std::uint64_t> near_end_oom_ns = {};
    std::uint64_t blocks = 0;             // number of blocks that a page for this device would draw
    bool blocks_are_pool_blocks = false;  // false: these are the device's own allocations
    bool state_only = false;
    std::vector<LineHolds> holders;  // most bytes first, then by name
    bool all_holders = true;         // false: lines with less memory are left out
    CompactCurve curve;
    // Filled by an analysis (ProcessSummary::analysed).
    std::vector<FailureSummary> failures;  // the first ones
    std::vector<ReplaySummary> settings;   // best first
    std::vector<ReplaySummary> cards;      // by size
};

// A CUDA context of the process, also on a device on which it allocated nothing.
struct ProcessContext {
    DeviceId device = 0;
    std::string uuid = {};                     // of the card; empty = not known
    std::uint64_t bytes = 0;                   // 0 = not known
    std::string measured = {};                 // how that was measured; empty = not known
    std::uint64_t begin_ns = 0;                // since the start of the trace
    std::optional<std::uint64_t> end_ns = {};  // nullopt: until the process ended

    bool operator==(const ProcessContext&) const = default;
};

// The file of a trace, by which a summary in a file finds out that its trace has changed.
struct TraceFile {
    std::uint64_t size_bytes = 0;
    std::int64_t modified_ns = 0;  // 0 = not known

    bool operator==(const TraceFile&) const = default;
};

struct ProcessSummary {
    // The trace or snapshot as given by the caller; empty = only a summary. A recording may consist
    // of several files: parts, and copies of a flight recorder. arrange() joins them: this is then
    // the newest file, and the figures are the largest ones of all files. They are lower bounds if
    // parts were removed.
    std::string path;
    std::string file;                      // its name without the folder
    std::vector<std::string> other_files;  // without folders
    std::string failure_path;              // the file with the first out-of-memory; empty: `path`
    TraceFile trace;
    // After arrange(): a process without a rank is a helper if it inherited one. So is the earlier
    // program of a process that became a rank by exec.
    JobPlace place;
    // After arrange(): tells apart processes with the same rank or, without a rank, the same
    // process id: "pid 4711", or the name of the file. Empty = not needed.
    std::string told_apart_by;
    // After arrange(): a helper whose rank ended normally, so its own failures did no harm.
    bool rank_ended_normally = false;
    // After find_survivors(): it ended normally well after another process had failed, so its
    // out-of-memory did not end it.
    bool outlived_failure = false;
    std::uint32_t pid = 0;            // 0: a snapshot, which has no process id
    std::uint64_t start_unix_ns = 0;  // 0 = not known
    std::string job;                  // name of the run of `fragtrace run`; empty = none
    // Virtual cards: processes with the same name share them; "-" = with nobody. Empty: real cards.
    std::string card_set;
    std::string program;  // its command line, at most 300 bytes
    std::uint64_t events = 0;
    std::uint64_t events_lost = 0;
    std::uint64_t pool_failures = 0;  // requests that pools of the program's own could not serve
    bool recording_gaps = false;      // recording was stopped for a time, or began late
    bool damaged = false;             // parts of the file cannot be read, or it was cut off
    std::uint32_t parts_missing = 0;  // after arrange(): of a recording in parts, removed ones
    std::uint64_t last_event_ns = 0;  // since the start of the trace
    // When it exited, since the start of the trace. nullopt: not known; not before its last event.
    std::optional<std::uint64_t> end_ns = {};
    KilledBetween killed = {};  // bounds of its end, if a signal ended it
    // After arrange(): when the next program of the process had begun, if exec replaced this one.
    // Since the start of this trace. Its memory was free by then.
    std::optional<std::uint64_t> replaced_ns = {};
    bool has_later_program = false;  // after arrange(): the job has the trace of that program
    ProcessEnd end;
    std::string import;                  // the format of an imported recording; empty = none
    std::string analyzer_version;        // of the fraganalyze that computed this; empty = not known
    bool analysed = false;               // failures are explained
    bool replayed = false;               // settings and cards were replayed
    std::vector<ProcessDevice> devices;  // those of which it requested memory
    std::vector<ProcessContext> contexts;

    // The sum over all devices; kUnknown64 if the figure of one is unknown. A peak is thus the sum
    // of the devices' own peaks.
    [[nodiscard]] std::uint64_t sum(std::uint64_t RunFigures::*part) const;
    // segments_known() of all devices.
    [[nodiscard]] bool all_segments_known() const;
    // Time of the first OOM, on a clock that all processes share. If the start of the trace is not
    // known, on that trace's own clock.
    [[nodiscard]] std::optional<std::uint64_t> first_oom() const;
    // The same for the out-of-memory that the process did not get past. If it ended normally: the
    // one after which it was served no request, but none if it outlived the failure of another
    // process. Otherwise, the one after which it was served only a
    // few small requests.
    [[nodiscard]] std::optional<std::uint64_t> fatal_oom() const;
    // The out-of-memory to name: the fatal one if there is one, else the first.
    [[nodiscard]] std::optional<std::uint64_t> named_oom() const;
    // When it ended, on the same clock. If end_ns is not known, when it last was alive: it ended
    // then or later.
    [[nodiscard]] std::uint64_t ended_at() const;
    // It ended then or earlier; equal to ended_at() if the time is exact. nullopt: not known.
    [[nodiscard]] std::optional<std::uint64_t> ended_by() const;

    // Whether more may have happened than is recorded: peaks and counts are then lower bounds.
    [[nodiscard]] bool is_partial() const {
        return misses_parts() || end_missing() || end.ending == Ending::kRunning;
    }

    [[nodiscard]] bool misses_parts() const {
        return parts_missing != 0 || recording_gaps || damaged;
    }

    // Whether last events may be missing with the end. Snapshots and imports have no end.
    [[nodiscard]] bool end_missing() const { return end.unknown() && pid != 0 && import.empty(); }

    // The explanation of named_oom(); the first one if it has none. nullptr: no failure is
    // explained.
    [[nodiscard]] const FailureSummary* named_failure() const;

    // Equal for two summaries of the same process, also of those from a trace and from a file.
    [[nodiscard]] auto identity() const { return std::tie(place.host, pid, start_unix_ns, file); }
};

// The peak of reserved memory or, if that is unknown, of allocated memory.
std::uint64_t peak_of(const ProcessDevice& device);
// The sum over the devices.
std::uint64_t peak_of(const ProcessSummary& process);

// A trace that cannot be read, for example because it is damaged from its first byte.
struct UnreadableTrace {
    std::string file;    // its name without the folder
    std::string reason;  // one line, with its path

    auto operator<=>(const UnreadableTrace&) const = default;
};

// Summarizes a process from the summary of its trace. Of its place in the job, only the rank is
// known. Reads symbols, to name the lines that hold memory.
ProcessSummary summarize_process(const TraceSummary& summary, const std::string& path);

// Memory by line, most bytes first. Lines with equal names become one. Equal sizes are sorted by
// name, so that equal processes have equal lists.
std::vector<LineHolds> lines_of(const std::vector<HeldBy>& holders, Symbolizer* symbols);

// Sets the place in the job, whose texts come from a trace.
void set_place(const JobPlace& place, ProcessSummary* process);

// Size and time of the file at `path`; zeros if they cannot be read.
TraceFile trace_file(const std::string& path);

// 16 hexadecimal digits. Equal for processes with the same devices, peaks and lines.
std::string fingerprint(const ProcessSummary& process);

// Text from a trace for a summary: valid UTF-8 without control characters, at most `width` bytes.
std::string summary_word(std::string_view text, std::size_t width);

}  // namespace fragtrace::analyzer
