#include "analyzer/replay/step_table.h"

#include <catch2/catch.hpp>

#include <random>
#include <vector>

using namespace fragtrace::analyzer;

namespace {

void require_equal(const Step& kept, const Step& given) {
    REQUIRE(kept.kind == given.kind);
    REQUIRE(kept.recorded_oom == given.recorded_oom);
    REQUIRE(kept.stream == given.stream);
    REQUIRE(kept.event == given.event);
    REQUIRE(kept.block == given.block);
    REQUIRE(kept.private_pool == given.private_pool);
    REQUIRE(kept.value == given.value);
    REQUIRE(kept.placed_as == given.placed_as);
    REQUIRE(kept.pending_count == given.pending_count);
    REQUIRE(kept.refusal_count == given.refusal_count);
    if (given.pending_count != 0) {
        REQUIRE(kept.first_pending == given.first_pending);
    }
    if (given.refusal_count != 0) {
        REQUIRE(kept.first_refusal == given.first_refusal);
    }
}

}  // namespace

TEST_CASE("a table of steps returns every step unchanged") {
    std::mt19937_64 random(5);
    const auto rarely = [&] { return random() % 10 == 0; };
    const auto any_step = [&](EventIndex event) {
        Step step;
        step.kind = rarely() ? static_cast<Step::Kind>(random() % 9)
                             : static_cast<Step::Kind>(random() % 2);
        step.event = rarely() ? static_cast<EventIndex>(random()) : event;
        step.block = step.kind == Step::Kind::kRelease || rarely() ? static_cast<BlockId>(random())
                                                                   : step.event;
        step.value = step.kind == Step::Kind::kRelease ? (rarely() ? random() : 0)
                     : rarely()                        ? random()
                                                       : random() >> 33;
        step.stream = rarely() ? static_cast<StreamId>(random()) : 3;
        step.event = rarely() ? kNoEvent : step.event;
        step.recorded_oom = rarely();
        step.private_pool = rarely() ? 7 : 0;
        step.placed_as = rarely() ? 9 : 0;
        step.pending_count = rarely() ? 2 : 0;
        step.first_pending = static_cast<std::uint32_t>(random());
        step.refusal_count = rarely() ? 1 : 0;
        step.first_refusal = static_cast<std::uint32_t>(random());
        return step;
    };
    StepTable table;
    std::vector<Step> given;
    for (EventIndex i = 0; i < 20'000; ++i) {
        given.push_back(any_step(i * 3));
        table.push_back(given.back());
        require_equal(table.back(), given.back());
    }
    for (int i = 0; i < 5'000; ++i) {
        const std::size_t at = random() % given.size();
        given[at] = any_step(static_cast<EventIndex>(at * 3));
        table.set(at, given[at]);
    }
    REQUIRE(table.size() == given.size());
    for (std::size_t i = 0; i < given.size(); ++i) {
        require_equal(table[i], given[i]);
    }
}
