// Made-up summaries of processes, for the tests of jobs.
#pragma once

#include "analyzer/analysis/job/job.h"
#include "analyzer/analysis/job/merge_summaries.h"
#include "analyzer/analysis/job/process_summary.h"
#include "analyzer/support/units.h"

#include <random>
#include <string>
#include <utility>
#include <vector>

namespace fragtrace::analyzer::testing {

using Random = std::mt19937_64;

inline std::uint64_t below(Random& random, std::uint64_t limit) {
    return random() % limit;
}

// A rank with one device, whose memory is in two lines.
inline ProcessSummary rank_of(int rank, std::uint64_t reserved = 2 * kGiB) {
    ProcessSummary made;
    made.place.rank = rank;
    made.place.world_size = 8;
    made.pid = 100 + static_cast<std::uint32_t>(rank);
    made.place.host = "node1";
    made.file = "train." + std::to_string(made.pid) + ".ftrace";
    made.path = "job/" + made.file;
    made.program = "python3 train.py";
    made.start_unix_ns = 1'000'000'000 + static_cast<std::uint64_t>(rank) * 1000;
    made.last_event_ns = 10'000'000'000;
    made.events = 1000;
    made.end = {.ending = Ending::kNormal, .code = 0};
    ProcessDevice& device = made.devices.emplace_back();
    device.name = "card";
    device.uuid = "GPU-" + std::to_string(rank);
    device.total_bytes = 24 * kGiB;
    device.capacity_bytes = 23 * kGiB;
    device.run.peak_reserved = reserved;
    device.run.peak_allocated = device.run.peak_requested = reserved - 100 * kMiB;
    device.run.peak_active = device.run.peak_allocated;
    device.run.waste_at_peak = {.reserved = reserved, .requested = reserved - 100 * kMiB};
    device.run.waste_at_peak.inactive_split = 100 * kMiB;
    device.run.segments_allocated = 10;
    device.holders = {{"train.py:10 weights", kGiB, 20},
                      {"train.py:42 step", reserved - kGiB - 100 * kMiB, 30}};
    device.curve = {.bin_ns = std::uint64_t{1} << 30, .unit_bytes = kMiB};
    for (int bin = 0; bin < 10; ++bin) {
        device.curve.reserved.push_back(static_cast<std::uint16_t>(reserved / kMiB));
        device.curve.allocated.push_back(static_cast<std::uint16_t>(reserved / kMiB - 100));
    }
    return made;
}

// Lets a rank run out of memory and end. It is served nothing more.
inline void fail(ProcessSummary* process, std::uint64_t time_ns, int exit_code = 1) {
    process->devices[0].run.ooms = 1;
    process->devices[0].first_oom_ns = time_ns;
    process->devices[0].near_end_oom_ns = time_ns;
    process->last_event_ns = time_ns;
    process->end = {.ending = Ending::kNormal, .code = exit_code};
}

inline void kill(ProcessSummary* process, int signal) {
    process->end = {.ending = Ending::kKilled, .signal = signal};
}

inline Job job_of(std::vector<ProcessSummary> processes) {
    Job job;
    job.processes = merged(std::move(processes));
    arrange(&job);
    return job;
}

inline std::vector<ProcessSummary> ranks(int count) {
    std::vector<ProcessSummary> made;
    for (int rank = 0; rank < count; ++rank) {
        made.push_back(rank_of(rank));
        made.back().place.world_size = count;
    }
    return made;
}

inline ReplaySummary replay(const std::string& name, std::uint64_t ooms, std::uint64_t peak) {
    return {.name = name, .ooms = ooms, .peak_reserved = peak, .class_words = "exact"};
}

}  // namespace fragtrace::analyzer::testing
