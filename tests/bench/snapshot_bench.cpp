// Reads a PyTorch memory snapshot and replays it: seconds of each part, and the most memory it
// took.
//
//   snapshot_bench FILE      record_snapshot.py makes one with as many entries as wanted
#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/replay/replayer.h"
#include "analyzer/snapshot/input.h"

#include <chrono>
#include <cstdio>
#include <sys/resource.h>

using namespace fragtrace::analyzer;

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) {
        std::fprintf(stderr, "usage: snapshot_bench FILE\n");
        return 2;
    }
    const auto start = std::chrono::steady_clock::now();
    const auto timeline = read_input(arguments[1]);
    if (!timeline.ok()) {
        std::fprintf(stderr, "%s\n", timeline.error().message.c_str());
        return 2;
    }
    std::printf("read      %6.2f s  %s entries, %zu events\n",
                seconds_since(start),
                timeline->fact("snapshot.entries", "no").c_str(),
                timeline->events.size());
    for (const DeviceId device : replayable_devices(*timeline)) {
        const auto begin = std::chrono::steady_clock::now();
        const ReplayScript script = make_script(*timeline, device);
        constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 50;
        auto beneath = std::make_unique<RecordedDevice>(kUnlimited, kUnlimited);
        RecordedDevice* recorded = beneath.get();
        auto pool = make_pool("pytorch",
                              timeline->fact("allocator_conf"),
                              std::move(beneath),
                              script.streams,
                              script.rules);
        if (!pool.ok()) {
            std::fprintf(stderr, "%s\n", pool.error().message.c_str());
            return 2;
        }
        const double prepared = seconds_since(begin);
        replay(script, **pool, recorded);
        std::printf("replay    %6.2f s  device %u, %zu steps (and %.2f s to prepare them)\n",
                    seconds_since(begin) - prepared,
                    static_cast<unsigned>(device),
                    script.steps.size(),
                    prepared);
    }
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    std::printf("in all    %6.2f s, %.2f s of the processor, %ld MB at most\n",
                seconds_since(start),
                static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                    static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
                usage.ru_maxrss * 1024 / 1'000'000);
    return 0;
}
