// The state that follows from events made by hand, and checks of it.
#pragma once

#include "analyzer/model/recorded_state.h"
#include "tests/unit/model/events.h"

#include <catch2/catch.hpp>

namespace fragtrace::testing {

inline constexpr std::uint64_t kBase = 0x7f0000000000;

inline analyzer::RecordedState at_end(const Events& events) {
    analyzer::RecordedState state(events.timeline);
    state.advance_to(static_cast<analyzer::EventIndex>(events.timeline.events.size()));
    return state;
}

inline analyzer::RecordedState one_by_one(const Events& events) {
    analyzer::RecordedState state;
    for (analyzer::EventIndex i = 0; i < events.timeline.events.size(); ++i) {
        state.apply(events.timeline.events[i], events.timeline.event_pools.at(i));
    }
    return state;
}

// Checks that segments are ascending and that blocks cover them without gaps.
inline void check_snapshot(const analyzer::HeapSnapshot& heap) {
    std::size_t next_block = 0;
    analyzer::DeviceAddress end = 0;
    for (const analyzer::HeapSegment& segment : heap.segments) {
        REQUIRE(segment.address >= end);
        end = segment.address + segment.size_bytes;
        REQUIRE(segment.first_block == next_block);
        analyzer::DeviceAddress next = segment.address;
        for (std::uint32_t i = 0; i < segment.block_count; ++i) {
            const analyzer::HeapBlock& block = heap.blocks.at(next_block++);
            REQUIRE(block.address == next);
            REQUIRE(block.size_bytes > 0);
            next += block.size_bytes;
        }
        REQUIRE(next == end);
    }
    REQUIRE(next_block == heap.blocks.size());
}

// Checks the memory that the driver holds for the process, if no pool was recorded. It must be the
// same in every sum.
inline void check_held(const Events& events, std::uint64_t bytes, std::size_t blocks) {
    for (const analyzer::RecordedState& state : {at_end(events), one_by_one(events)}) {
        const analyzer::MemoryTotals& totals = state.totals(0);
        CHECK(totals.own == bytes);
        CHECK(totals.reserved == bytes);
        CHECK(totals.allocated == bytes);
        CHECK(totals.requested == bytes);
        CHECK(totals.other == 0);
        CHECK(totals.blocks == blocks);
        const analyzer::HeapSnapshot heap = state.snapshot(0);
        check_snapshot(heap);
        std::uint64_t listed = 0;
        for (const analyzer::HeapBlock& block : heap.blocks) {
            listed += block.size_bytes;
        }
        CHECK(listed == bytes);
        CHECK(state.violations().count == 0);
    }
}

}  // namespace fragtrace::testing
