#include "analyzer/analysis/read_run.h"

#include "analyzer/analysis/windows.h"
#include "analyzer/snapshot/input.h"
#include "analyzer/trace/event_stream.h"

#include <algorithm>
#include <utility>

namespace fragtrace::analyzer {

Result<ReadRun> read_run(const std::string& path, const AnalyzeOptions& options) {
    if (!is_longer_than(options.most_events, path)) {
        auto timeline = read_input(path,
                                   {.torch_version = options.torch_version,
                                    .absorb_ring = options.absorb_ring,
                                    .replay_sizes = false});
        return timeline ? Result<ReadRun>(ReadRun{std::move(timeline).value(), std::nullopt})
                        : Result<ReadRun>(timeline.error());
    }
    if (options.absorb_ring) {
        if (const auto taken_over = take_over_ring(path); !taken_over) {
            return taken_over.error();
        }
    }
    Result<EventStream> stream = EventStream::open(path);
    if (!stream) {
        return stream.error();
    }
    TraceSummary whole = summarize_stream(&*stream, false);
    Timeline timeline = read_windows(&*stream, choose_windows(whole, options.most_events));
    return ReadRun{std::move(timeline), std::move(whole)};
}

void take_whole_run(const TraceSummary& whole,
                    const std::vector<DeviceId>& devices,
                    RecordedRun* recorded) {
    for (std::size_t i = 0; i < devices.size(); ++i) {
        const auto found = std::find_if(
            whole.devices.begin(), whole.devices.end(), [&](const DeviceSummary& device) {
                return device.device == devices[i];
            });
        if (found != whole.devices.end()) {
            recorded->devices[i].summary = found->metrics.summary;
            recorded->devices[i].state_only = found->metrics.state_only;
        }
    }
}

}  // namespace fragtrace::analyzer
