#include "analyzer/analysis/read_run.h"

#include "analyzer/analysis/windows.h"
#include "analyzer/trace/event_stream.h"

#include <utility>

namespace fragtrace::analyzer {

Result<ReadRun> read_run(const std::string& path,
                         std::uint64_t most_events,
                         const InputOptions& options) {
    if (!is_longer_than(most_events, path)) {
        auto timeline = read_input(path, options);
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
    Timeline timeline = read_windows(&*stream, choose_windows(whole, most_events));
    return ReadRun{std::move(timeline), std::move(whole)};
}

}  // namespace fragtrace::analyzer
