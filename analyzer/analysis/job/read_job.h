// How the summaries of a job's processes are read: from traces, on all cores, or from files of
// summaries. Of each trace only its summary is kept.
#pragma once

#include "analyzer/analysis/job/job.h"
#include "analyzer/support/result.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace fragtrace::analyzer {

// Longer traces are summarized event by event, which needs little memory.
inline constexpr std::uint64_t kLongTrace = 2'000'000;
bool is_long_trace(const std::string& path);

// Whether summaries are kept in files beside their traces, TRACE.summary.json.
enum class SummaryCache : std::uint8_t {
    kNever,   // they are neither read nor written
    kLarge,   // of traces that take a noticeable time to read
    kAlways,  // of all traces
};

// The traces, snapshots, imports and summaries in a folder, sorted by name. A summary beside its
// trace is left out.
std::vector<std::string> files_of_job(const std::string& folder, std::error_code* error);

// Reads traces and files of summaries, on all cores. A trace and its summary count once. The
// processes are merged, but not arranged. Calls `progress(read, all)` after each file, one at a
// time.
Job read_job(const std::vector<std::string>& paths,
             SummaryCache cache = SummaryCache::kNever,
             const std::function<void(std::size_t, std::size_t)>& progress = {});

// Number of traces of the job, with those that cannot be read. Before arrange().
std::size_t traces_of(const Job& job);

// The summary in `file`, if it is that of the trace at `path` as it is now, alone there, and
// computed by this version of fraganalyze.
std::optional<ProcessSummary> current_summary(const std::string& path, const std::string& file);

// Summarizes one trace, snapshot or import. First moves the ring of an ended process into its
// trace.
Result<ProcessSummary> read_process(const std::string& path);

// Writes the summary beside its trace, if `cache` asks for it, the trace is complete, and its
// folder belongs to this user. Nothing is written through a symbolic link. If it cannot be written,
// it is computed again next time. Thread-safe.
void keep_summary(const ProcessSummary& process, SummaryCache cache);

}  // namespace fragtrace::analyzer
