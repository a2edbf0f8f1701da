// Limits that a run has to keep, for continuous integration: each limit checked on each device.
#pragma once

#include "analyzer/analysis/check/baseline.h"
#include "analyzer/analysis/metrics/trace_summary.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

// A share of something, or an amount: "10%", "512MiB".
struct ShareOrBytes {
    std::optional<double> share;  // 0.1 = 10 %
    std::uint64_t bytes = 0;      // where it is no share
};

// Errors are kUsage.
Result<ShareOrBytes> parse_share_or_bytes(std::string_view text);

struct Limits {
    std::optional<std::uint64_t> max_reserved;   // peak, bytes
    std::optional<std::uint64_t> max_allocated;  // peak, bytes
    // Reserved but not requested once reserved was first at its peak; a share is one of reserved.
    std::optional<ShareOrBytes> max_waste;
    bool no_oom = false;
    bool no_retries = false;
    std::optional<Baseline> baseline;
    double tolerance = 0.01;      // by which peaks and driver calls may exceed the baseline's
    bool losses_allowed = false;  // of events: figures of a trace that lost some prove nothing

    [[nodiscard]] bool none() const;
};

struct CheckRow {
    std::string_view check;  // "max-reserved", "baseline-ooms", ...
    std::optional<DeviceId> device;
    std::uint64_t value = 0;
    std::uint64_t limit = 0;
    bool passed = false;
    std::string text;  // what was wanted and what was seen
};

// In the order of the devices; a trace without device memory keeps every limit but a baseline's.
std::vector<CheckRow> check_limits(const TraceSummary& summary, const Limits& limits);

}  // namespace fragtrace::analyzer
