#include "analyzer/analysis/metrics/measure.h"

#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/model/unknown_segments.h"

#include <deque>

namespace fragtrace::analyzer {
namespace {

class PeakWatcher : public LedgerWatcher {
  public:
    explicit PeakWatcher(DeviceId device) : device_(device) {}

    void after(EventIndex i, const Event& /*event*/, const RecordedState& state) override {
        const MemoryTotals& now = state.totals(device_);
        history.add(i, now.allocated, now.reserved);
    }

    PeakHistory history;

  private:
    DeviceId device_;
};

bool is_memory_call(EventKind kind) {
    switch (kind) {
        case EventKind::kDeviceAlloc:
        case EventKind::kDeviceFree:
        case EventKind::kAddressReserve:
        case EventKind::kAddressFree:
        case EventKind::kPhysicalCreate:
        case EventKind::kPhysicalRelease:
        case EventKind::kMap:
        case EventKind::kUnmap:
        case EventKind::kAllocRefused:
        case EventKind::kAsyncAlloc:
        case EventKind::kAsyncFree:
        case EventKind::kPoolTrim:
        case EventKind::kArrayAlloc:
        case EventKind::kArrayFree:
            return true;
        default:
            return false;
    }
}

std::uint64_t driver_time_ns(const Timeline& timeline, DeviceId device) {
    std::uint64_t sum = 0;
    for (const auto& [index, duration_ns] : timeline.durations) {
        const EventKind kind = timeline.events.kind(index);
        if (timeline.events.device(index) == device && is_memory_call(kind)) {
            sum += duration_ns;
        }
    }
    return sum;
}

}  // namespace

RecordedRun measure(const Timeline& timeline, const std::vector<DeviceId>& devices) {
    RunMeasurement run(timeline);
    PhaseMeasurement phases(timeline);
    std::deque<DeviceMeasurement> measurements;
    std::deque<PeakWatcher> peaks;
    std::vector<LedgerWatcher*> watchers = {&run, &phases};
    for (const DeviceId device : devices) {
        watchers.push_back(&measurements.emplace_back(device));
        watchers.push_back(&peaks.emplace_back(device));
    }
    Ledger ledger(timeline, watchers);
    ledger.walk(timeline);

    RecordedRun result;
    result.run = run.finish();
    phases.finish(&result.run);
    result.phase_ranges = phases.take_ranges();
    for (std::size_t i = 0; i < devices.size(); ++i) {
        result.devices.push_back(measurements[i].finish(ledger.state()));
        result.devices.back().summary.driver_time_ns = driver_time_ns(timeline, devices[i]);
        if (RunFigures& figures = result.devices.back().summary; !segments_known(figures)) {
            figures.peak_reserved = reported_reserved(timeline.facts, devices[i]);
        }
        result.peaks.push_back(std::move(peaks[i].history));
    }
    return result;
}

}  // namespace fragtrace::analyzer
