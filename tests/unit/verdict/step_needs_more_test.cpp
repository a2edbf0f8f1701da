// Whether a step that ran out of memory needs more than there is.
#include "analyzer/analysis/culprit.h"
#include "analyzer/support/units.h"

#include <catch2/catch.hpp>

using namespace fragtrace::analyzer;

namespace {

constexpr EventIndex kFailed = 7;

// A step that would hold 10 GiB fails on a card of 16 GiB, of which the pool may use 8 GiB.
DeviceAnalysis device_with(std::uint64_t processes_bytes) {
    DeviceAnalysis device;
    device.capacity_bytes = 8 * kGiB;
    Forecast& forecast = device.forecast.emplace();
    forecast.failed = kFailed;
    forecast.peak_allocated_bytes = 10 * kGiB;
    forecast.in_use_fits = false;
    Holders& holders = device.held.holders.emplace_back();
    holders.event = kFailed;
    holders.outside.processes = processes_bytes;
    return device;
}

bool needs_more(const DeviceAnalysis& device, std::string_view verdict) {
    Diagnosis oom;
    oom.trouble.event = kFailed;
    oom.verdict.id = verdict;
    return step_needs_more(device, oom);
}

}  // namespace

TEST_CASE("a step needs more than there is unless it fits without other processes") {
    CHECK(needs_more(device_with(2 * kGiB - 1), "outside_pool"));
    CHECK_FALSE(needs_more(device_with(2 * kGiB), "outside_pool"));
    CHECK(needs_more(device_with(0), "outside_pool"));  // who holds the memory is not known
    CHECK(needs_more(device_with(2 * kGiB), "genuine"));
}
