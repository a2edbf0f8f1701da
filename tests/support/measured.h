// The metrics of one device, or of a run, for tests that need nothing else.
#pragma once

#include "analyzer/analysis/metrics/measure.h"

namespace fragtrace::testing {

inline analyzer::DeviceMetrics measure_device(const analyzer::Timeline& timeline,
                                              analyzer::DeviceId device) {
    return analyzer::measure(timeline, {device}).devices.front();
}

inline analyzer::RunMetrics measure_run(const analyzer::Timeline& timeline) {
    return analyzer::measure(timeline, {}).run;
}

}  // namespace fragtrace::testing
