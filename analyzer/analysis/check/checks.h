// Limits that a run must keep, for continuous integration. Each limit is checked on each device.
#pragma once

#include "analyzer/analysis/check/baseline.h"
#include "analyzer/analysis/metrics/trace_summary.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

// A share of a total, or a number of bytes: "10%", "512MiB".
struct ShareOrBytes {
    std::optional<double> share;  // 0.1 = 10 %
    std::uint64_t bytes = 0;      // used if `share` is not set
};

// Errors are kUsage.
Result<ShareOrBytes> parse_share_or_bytes(std::string_view text);

struct Limits {
    std::optional<std::uint64_t> max_reserved;   // peak, bytes
    std::optional<std::uint64_t> max_allocated;  // peak, bytes
    // Memory that is reserved but not requested, when reserved first reached its peak. A share is
    // relative to reserved.
    std::optional<ShareOrBytes> max_waste;
    bool no_oom = false;
    bool no_retries = false;
    std::optional<Baseline> baseline;
    double tolerance = 0.01;  // peaks and driver calls may exceed the baseline's by this share
    // Accept lost events; otherwise they fail the check, since lost events make figures too low.
    bool losses_allowed = false;

    [[nodiscard]] bool none() const;
};

struct CheckRow {
    std::string_view check;  // "max-reserved", "baseline-ooms", ...
    std::optional<DeviceId> device;
    std::uint64_t value = 0;
    std::uint64_t limit = 0;
    bool passed = false;
    std::string text;  // the measured value and the limit
};

// Rows in order: lost events, then each device, then baseline devices that the trace lacks. A trace
// without device memory can fail only on the first and the last kind.
std::vector<CheckRow> check_limits(const TraceSummary& summary, const Limits& limits);

}  // namespace fragtrace::analyzer
