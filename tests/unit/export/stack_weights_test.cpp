// Bytes by stack add up to the recorded sums, at every kind of moment.
#include "analyzer/export/stack_weights.h"

#include "analyzer/analysis/analyze.h"
#include "tests/support/made_up_traces.h"
#include "tests/support/simulated_program.h"

#include <catch2/catch.hpp>

#include <numeric>

using namespace fragtrace::analyzer;
using namespace fragtrace::testing;

namespace {

std::unique_ptr<Analysis> analyzed(const std::string& path) {
    auto analysis = analyze(path, {});
    REQUIRE(analysis.ok());
    return std::move(*analysis);
}

std::uint64_t sum(const WeightedStacks& weighted) {
    return std::accumulate(
        weighted.stacks.begin(),
        weighted.stacks.end(),
        std::uint64_t{0},
        [](std::uint64_t bytes, const StackWeight& stack) { return bytes + stack.bytes; });
}

RecordedState state_after(const Analysis& analysis, EventIndex moment) {
    return state_at_moment(analysis, {.output = "", .moment = moment});
}

// Checks the sum of the holders after many events. Returns how often some memory was pending.
int check_holders(const Analysis& analysis) {
    int pending = 0;
    const auto count = static_cast<EventIndex>(analysis.timeline.events.size());
    for (EventIndex moment = 0; moment < count; moment += std::max(1u, count / 50)) {
        const RecordedState state = state_after(analysis, moment);
        for (const DeviceAnalysis& device : analysis.devices) {
            const MemoryTotals& totals = state.totals(device.device);
            const WeightedStacks held =
                weighted_stacks(analysis, device, StackQuantity::kHolders, state);
            CHECK(sum(held) == totals.active());
            CHECK(held.moment == moment);
            pending += totals.pending != 0 ? 1 : 0;
        }
    }
    return pending;
}

}  // namespace

TEST_CASE("holders are the allocated and the pending bytes of every moment") {
    const TemporaryFolder folder;
    private_pools_trace(7).save(folder.file("pools"));
    CHECK(check_holders(*analyzed(folder.file("pools"))) > 0);
    expandable_trace(7).save(folder.file("expandable"));
    check_holders(*analyzed(folder.file("expandable")));
}

TEST_CASE("waste is kept per stack, and adds up to the free bytes that live blocks keep") {
    const TemporaryFolder folder;
    SimulatedProgram program(100 * kMiB);
    program.at("first", 1);
    std::uint32_t blocks[8];
    for (int i = 0; i < 8; ++i) {
        program.at(i % 4 == 0 ? "kept" : "also_kept", 2);
        blocks[i] = program.alloc(5 * kMiB);
    }
    for (int i = 1; i < 8; i += 2) {
        program.free(blocks[i]);
    }
    program.at("large", 3);
    program.alloc(90 * kMiB);
    program.save(folder.file("trace"));
    const auto analysis = analyzed(folder.file("trace"));
    const DeviceAnalysis& device = analysis->devices.front();
    REQUIRE(reported_oom(device) != nullptr);
    const EventIndex failed = reported_oom(device)->trouble.event;
    CHECK(oom_moment(*analysis) == failed);
    const RecordedState state = state_at_moment(*analysis, {});
    const WeightedStacks waste = weighted_stacks(*analysis, device, StackQuantity::kWaste, state);
    CHECK(waste.moment == failed);
    CHECK(waste.stacks.size() == 2);
    CHECK(sum(waste) == reported_oom(device)->verdict.free_bytes);
    const WeightedStacks all =
        weighted_stacks(*analysis, device, StackQuantity::kAllocations, state);
    CHECK(sum(all) == 8 * 5 * kMiB);
    CHECK(all.moment == kNoEvent);
    CHECK(peak_moment(*analysis) < failed);
    CHECK(state_after(*analysis, peak_moment(*analysis)).totals(0).allocated ==
          device.recorded.peak_allocated);
}
