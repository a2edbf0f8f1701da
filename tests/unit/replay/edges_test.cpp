// A replay at the edges of what was recorded.
#include "analyzer/replay/replayer.h"
#include "analyzer/replay/script.h"
#include "tests/unit/model/events.h"

#include <catch2/catch.hpp>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::Events;

TEST_CASE("a device that goes by its capacity gives all of it, and no byte more") {
    RecordedDevice device(1000, 1000);
    device.decide_by_capacity();
    CHECK_FALSE(device.take(1001));
    CHECK(device.take(1000));
    CHECK_FALSE(device.take(1));
}

TEST_CASE("settings of no device are those of all devices") {
    Events events;
    events.timeline.facts["text.1"] = "max_split_size_mb:64";
    events.timeline.facts["text.2"] = "max_split_size_mb:128";
    events.add(EventKind::kSettings, 0, 1).device(31);
    events.segment(0x10000000, 20 << 20);
    events.block(0x10000000, 512, 512);
    events.add(EventKind::kSettings, 0, 2).device(31);
    const ReplayScript script = make_script(events.timeline, 0);
    CHECK(script.first_settings == "max_split_size_mb:64");
    CHECK(script.settings == std::vector<std::string>{"max_split_size_mb:128"});
}
