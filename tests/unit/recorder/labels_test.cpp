// Labels of the program: a block gets the innermost one, however deep it is nested.
#include "recorder/labels.h"

#include "recorder/drain_thread.h"
#include "recorder/recorder.h"
#include "recorder/session.h"
#include "trace_dump.h"

#include <catch2/catch.hpp>

#include <csignal>
#include <string>
#include <unistd.h>

using namespace fragtrace;
using namespace fragtrace::test;
namespace preload = fragtrace::preload;

namespace {

std::string label_at(uint64_t depth) {
    return "label " + std::to_string(depth);
}

}  // namespace

TEST_CASE("a block gets the innermost of 40 nested labels, on the way in and on the way out") {
    constexpr uint64_t kLabels = 40;
    const Folder folder;
    const Child child = in_child(folder.path(), [] {
        preload::record(make_event(1, 1));
        for (int round = 0; round < 2; ++round) {  // the second one after all labels have ended
            for (uint64_t depth = 1; depth <= kLabels; ++depth) {
                preload::begin_label(label_at(depth).c_str());
                preload::label_new_block(depth, 0);
            }
            for (uint64_t depth = kLabels; depth > 0; --depth) {
                preload::label_new_block(depth, 0);
                preload::end_label();
            }
            preload::label_new_block(kLabels + 1, 0);  // no label is open
        }
    });
    CHECK(child.status == 0);
    Dump dump = read_trace(folder.traces().at(0));
    uint64_t labels = 0;
    for (const EventRecord& event : dump.events) {
        if (event.kind == EventKind::kBlockLabel) {
            ++labels;
            CHECK(dump.facts["text." + std::to_string(event.size)] == label_at(event.address));
        }
    }
    CHECK(labels == 4 * kLabels);
    CHECK(!dump.facts.contains("tables.without_room"));
}

TEST_CASE("labels beyond the deepest place are counted, and name no block wrongly") {
    constexpr uint64_t kDeepest = 32 + 65536;
    const Folder folder;
    const Child child = in_child(folder.path(), [] {
        preload::record(make_event(1, 1));
        for (uint64_t depth = 1; depth <= kDeepest + 3; ++depth) {
            preload::begin_label(depth == kDeepest ? "deepest" : "other");
        }
        preload::label_new_block(2, 0);
        for (int i = 0; i < 3; ++i) {
            preload::end_label();
        }
        preload::label_new_block(3, 0);
    });
    CHECK(child.status == 0);
    Dump dump = read_trace(folder.traces().at(0));
    const EventRecord& last = dump.events.back();
    REQUIRE(dump.events.size() == 2);
    CHECK(last.address == 3);
    CHECK(dump.facts["text." + std::to_string(last.size)] == "deepest");
    CHECK(dump.facts["tables.without_room"] == "3");
}

TEST_CASE("a killed process leaves the exact numbers of its losses") {
    constexpr uint64_t kDeepest = 32 + 65536;
    const Folder folder;
    in_child(folder.path(), [] {
        preload::record(make_event(1, 1));
        for (uint64_t depth = 1; depth <= kDeepest + 10; ++depth) {
            preload::begin_label("label");
        }
        preload::flush_now(&preload::g_session);
        preload::begin_label("label");  // too few for another fact before the end
        usleep(2'500'000);              // the drain writes once a second
        raise(SIGKILL);
    });
    Dump dump = read_trace(folder.traces().at(0));
    CHECK(dump.facts["tables.without_room"] == "10");
    CHECK(absorb_ring(&dump));
    CHECK(dump.facts["tables.without_room"] == "11");
}
