// Writes made-up jobs, to measure how the view of a job grows with its size (docs/performance.md).
//
//     make_job traces FOLDER RANKS EVENTS       one trace per rank
//     make_job summaries FOLDER PROCESSES       one summary per process
//
// One rank in 64 reserves twice as much as the others, and one runs out of memory. The traces of
// the others are 16 different runs, with at most 10 % more or fewer events than EVENTS. Summaries
// of equal ranks differ by at most 2 %.
#include <fragtrace/sizes.h>

#include "analyzer/analysis/job/job.h"
#include "analyzer/analysis/job/process_summary_json.h"
#include "analyzer/analysis/job/read_job.h"
#include "tests/support/trace_writer.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

using namespace fragtrace;
using namespace fragtrace::analyzer;

namespace {

constexpr std::uint64_t kBase = 0x200000000000;
constexpr std::uint64_t kSegmentBytes = 20 * kMiB;
constexpr std::size_t kSegments = 40;
constexpr std::size_t kHosts = 8;  // ranks per host
constexpr int kOtherEvery = 64;    // one rank in so many reserves more
constexpr int kOtherRank = 13;     // the first of these
constexpr int kRuns = 16;          // different traces of usual ranks
constexpr int kLargerRun = kRuns;
constexpr int kFailingRun = kRuns + 1;

// Steps of a training: blocks of 2 MiB that are allocated and freed in random order, from 40 lines.
testing::TraceWriter made_up_run(std::uint64_t seed,
                                 std::uint64_t events,
                                 bool larger,
                                 bool fails) {
    std::mt19937_64 random(seed);
    testing::TraceWriter trace;
    trace.fact("command_line", "python3 train.py");
    trace.fact("torch_version", "2.9.0");
    trace.fact("device.0.name", "made-up card");
    trace.fact("device.0.total_bytes", std::to_string(80 * kGiB));
    std::vector<std::uint32_t> stacks;
    for (std::uint32_t line = 0; line < 40; ++line) {
        const std::uint32_t code = trace.code("step", "/home/user/train.py", 1);
        stacks.push_back(trace.python_node(0, code, line + 1));
    }
    EventRecord sample = {};
    sample.kind = EventKind::kMemoryInfo;
    sample.size = 79 * kGiB;
    sample.extra = 80 * kGiB;
    trace.event(sample);
    const std::size_t segments = larger ? 2 * kSegments : kSegments;
    constexpr std::uint64_t kPlaces = kSegmentBytes / (2 * kMiB);
    for (std::size_t i = 0; i < segments; ++i) {
        trace.device_alloc(kBase + i * kSegmentBytes, kSegmentBytes, true);
    }
    std::vector<bool> used(segments * kPlaces);
    while (trace.events().size() < events) {
        const std::size_t place = random() % used.size();
        const std::uint64_t address = kBase + place * 2 * kMiB;
        trace.set_python_stack(stacks[place % stacks.size()]);
        if (used[place]) {
            trace.block_free(address, 2 * kMiB);
        } else {
            trace.block_alloc(address, 2 * kMiB - 100, 2 * kMiB);
        }
        used[place] = !used[place];
        if (trace.events().size() % 4096 == 0) {
            trace.flush();
        }
    }
    if (fails) {
        trace.simple(EventKind::kBlockOutOfMemory, 0, 8 * kGiB, 0);
    }
    trace.flush();
    trace.end(EndReason::kNormal);
    trace.footer();
    return trace;
}

void save(testing::TraceWriter* trace, const std::string& folder, int rank) {
    trace->header.rank = rank;
    trace->header.pid = static_cast<std::uint32_t>(10'000 + rank);
    trace->header.session[0] = static_cast<std::uint64_t>(rank) + 1;  // equal ones are copies
    trace->header.start_unix_ns = 1'700'000'000'000'000'000 + static_cast<std::uint64_t>(rank);
    trace->save(folder + "/train." + std::to_string(10'000 + rank) + ".ftrace");
}

// Which of the made-up runs a rank has: one of kRuns usual ones, the larger one, or the one that
// fails.
int run_of(int rank, int ranks) {
    if (rank == ranks / 2) {
        return kFailingRun;
    }
    return rank % kOtherEvery == kOtherRank ? kLargerRun : rank % kRuns;
}

void make_traces(const std::string& folder, int ranks, std::uint64_t events) {
    std::mt19937_64 random(1);
    for (int kind = 0; kind <= kFailingRun; ++kind) {
        const std::uint64_t uneven = events - events / 10 + random() % (events / 5 + 1);
        testing::TraceWriter run =
            made_up_run(random(), uneven, kind == kLargerRun, kind == kFailingRun);
        for (int rank = 0; rank < ranks; ++rank) {
            if (run_of(rank, ranks) == kind) {
                save(&run, folder, rank);
            }
        }
    }
}

void make_summaries(const std::string& folder, int processes) {
    const std::string trace = folder + "/train.10000.ftrace";
    std::mt19937_64 random(3);
    std::vector<ProcessSummary> kinds;
    for (const bool larger : {false, true}) {
        testing::TraceWriter run = made_up_run(larger ? 2 : 1, 100'000, larger, false);
        save(&run, folder, 0);
        Result<ProcessSummary> process = read_process(trace);
        if (!process) {
            std::fprintf(stderr, "%s\n", process.error().message.c_str());
            std::exit(1);
        }
        kinds.push_back(std::move(process).value());
    }
    std::filesystem::remove(trace);
    for (int rank = 0; rank < processes; ++rank) {
        ProcessSummary process = kinds[rank % kOtherEvery == kOtherRank ? 1 : 0];
        process.place.rank = rank;
        process.place.world_size = processes;
        process.place.host = "node" + std::to_string(static_cast<std::size_t>(rank) / kHosts);
        process.pid = static_cast<std::uint32_t>(10'000 + rank);
        process.place.session = {static_cast<std::uint64_t>(rank) + 1, 1};
        process.start_unix_ns = 1'700'000'000'000'000'000 + random() % 1'000'000'000;
        process.file = "train." + std::to_string(process.pid) + ".ftrace";
        process.path.clear();
        ProcessDevice& device = process.devices.front();
        const std::uint64_t more = random() % (device.run.peak_reserved / 50);
        device.run.peak_reserved += more;
        device.run.waste_at_peak.reserved += more;
        device.run.waste_at_peak.inactive_split += more;
        device.uuid = "GPU-" + std::to_string(rank);
        for (LineHolds& line : device.holders) {
            line.bytes += random() % (line.bytes / 50 + 1);
        }
        if (rank == processes / 2) {
            device.run.ooms = 1;
            device.first_oom_ns = process.last_event_ns;
        }
        const Status written =
            write_summaries(folder + "/train." + std::to_string(process.pid) + ".json", {process});
        if (!written) {
            std::fprintf(stderr, "%s\n", written.error().message.c_str());
            std::exit(1);
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::string kind = argc > 1 ? argv[1] : "";
    if ((kind != "traces" || argc != 5) && (kind != "summaries" || argc != 4)) {
        std::fprintf(stderr,
                     "make_job traces FOLDER RANKS EVENTS\nmake_job summaries FOLDER PROCESSES\n");
        return 2;
    }
    std::filesystem::create_directories(argv[2]);
    if (kind == "traces") {
        make_traces(argv[2], std::atoi(argv[3]), std::strtoull(argv[4], nullptr, 10));
    } else {
        make_summaries(argv[2], std::atoi(argv[3]));
    }
    return 0;
}
