#include "analyzer/analysis/whatif/near_miss.h"

#include "analyzer/support/units.h"

#include <algorithm>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kMaxLooks = 1'000'000;
constexpr std::uint64_t kLargeBytes =
    32 * kDriverPageBytes;  // large enough to be sure of the large pool
constexpr std::size_t kMaxPoints = 256;

}  // namespace

NearMiss find_near_miss(const ReplayScript& script, Pool& pool, RecordedDevice* recorded) {
    NearMiss found;
    const std::size_t every = std::max<std::size_t>(1, script.steps.size() / kMaxLooks);
    const std::size_t stretch = std::max<std::size_t>(1, script.steps.size() / kMaxPoints);
    std::size_t last_stretch = ~std::size_t{0};
    std::size_t next = 0;
    ReplayHooks hooks;
    hooks.after_request = [&](std::size_t i, const AllocateResult&, Pool& served_by) {
        ++found.requests;
        if (i < next) {
            return;
        }
        next = i + every;
        ++found.looked_at;
        const Step step = script.steps[i];
        const std::uint64_t bytes = std::max(
            served_by.largest_free_bytes(
                {.block = step.block, .requested_bytes = kLargeBytes, .stream = step.stream}),
            (served_by.device().free_bytes() + served_by.releasable_bytes()) / kDriverPageBytes *
                kDriverPageBytes);
        if (found.least.event == kNoEvent || bytes < found.least.bytes) {
            found.least = {step.event, bytes};
        }
        if (i / stretch != last_stretch) {
            last_stretch = i / stretch;
            found.over_time.push_back({step.event, bytes});
        } else {
            found.over_time.back().bytes = std::min(found.over_time.back().bytes, bytes);
        }
    };
    replay(script, pool, recorded, hooks);
    return found;
}

}  // namespace fragtrace::analyzer
