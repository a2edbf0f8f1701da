#include "recorded.h"

#include "analyzer/analysis/analyze.h"
#include "analyzer/model/recorded_state.h"
#include "analyzer/report/page/page_content.h"
#include "analyzer/support/output_file.h"
#include "tests/support/made_up_traces.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

namespace fragtrace::page_test {

using namespace analyzer;

PageData recorded_page(bool expandable, const std::string& moments_file) {
    const testing::TemporaryFolder folder;
    const std::string path = folder.file("made-up.4711.ftrace");
    (expandable ? testing::expandable_trace(7) : testing::private_pools_trace(7)).save(path);
    const auto analysis = analyze(path, {});
    if (!analysis) {
        throw std::runtime_error(analysis.error().message);
    }
    const Timeline& timeline = (*analysis)->timeline;
    PageData data = page_content(**analysis);
    const auto device = static_cast<DeviceId>(data.devices.front().index);
    RecordedState state(timeline);
    nlohmann::json moments = nlohmann::json::array();
    for (EventIndex i = 0; i < timeline.events.size(); ++i) {
        state.advance();
        const std::uint64_t now_ns = timeline.events[i].time_ns;
        const auto& segments = state.segments(device);
        // A segment's stream and pool are recorded with its first block. The page knows them from
        // the start.
        const bool known = std::none_of(segments.begin(), segments.end(), [](const auto& segment) {
            return segment.stream == kNoStream;
        });
        if (!known ||
            (i + 1 < timeline.events.size() && timeline.events[i + 1].time_ns == now_ns)) {
            continue;
        }
        const MemoryTotals& totals = state.totals(device);
        const MemorySample& sample = state.sample(device);
        const std::uint64_t other =
            sample.event == kNoEvent
                ? totals.other
                : sample.total_bytes - totals.own_pool() - state.device_free_bytes(device);
        moments.push_back({now_ns,
                           totals.requested,
                           totals.allocated,
                           totals.pending,
                           totals.reserved,
                           state.releasable_bytes(device),
                           other});
    }
    std::filesystem::remove(moments_file);  // left by an earlier run
    if (const Status written = write_output(moments_file, moments.dump()); !written) {
        throw std::runtime_error(written.error().message);
    }
    return data;
}

}  // namespace fragtrace::page_test
