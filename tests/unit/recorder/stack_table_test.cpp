// Deep and many stacks: the tree grows with use up to its limit, and counts what does not fit.
#include "recorder/stack_table.h"

#include "recorder/recorder.h"
#include "recorder/session.h"
#include "trace_dump.h"

#include <catch2/catch.hpp>

#include <sys/stat.h>
#include <thread>

using namespace fragtrace;
using namespace fragtrace::test;
namespace preload = fragtrace::preload;

namespace {

uint32_t no_line() {
    return 0;
}

// Frame `number` is called from frame `number / 2`.
uint64_t frame_of(uint64_t number) {
    return 0x1000 + number * 16;
}

}  // namespace

TEST_CASE("the tree of stacks grows to its capacity and finds every node again") {
    preload::Ring ring{};
    preload::StackTable stacks{};
    const uint64_t session[2] = {uint64_t{static_cast<uint32_t>(getpid())}, 1};
    REQUIRE(ring.create(session, 1024, "", "", true));
    REQUIRE(stacks.create(&ring));
    const uint64_t ready_bytes = ring.node_room.ready_bytes;
    std::vector<uint32_t> nodes = {0};
    while (nodes.size() < preload::kNodeCapacity) {
        const uint64_t number = nodes.size();
        const uint32_t node = stacks.intern(nodes[number / 2], frame_of(number), no_line);
        REQUIRE(node != 0);
        nodes.push_back(node);
    }
    CHECK(ring.header->node_count == preload::kNodeCapacity);
    CHECK(ring.node_room.ready_bytes == preload::kNodeCapacity * sizeof(StackNode));
    if (strncmp(ring.path(), "/dev/shm/", 9) == 0) {
        CHECK(ready_bytes < ring.node_room.ready_bytes / 16);
    }
    CHECK(stacks.intern(nodes[1], 7, no_line) == 0);  // full
    for (uint64_t number = 1; number < nodes.size(); ++number) {
        REQUIRE(stacks.intern(nodes[number / 2], frame_of(number), no_line) == nodes[number]);
    }
    ring.remove_file();
    ring.abandon();
    stacks.abandon();
}

TEST_CASE("threads that fill the tree at once get the nodes of their own frames") {
    preload::Ring ring{};
    preload::StackTable stacks{};
    const uint64_t session[2] = {uint64_t{static_cast<uint32_t>(getpid())}, 2};
    REQUIRE(ring.create(session, 1024, "", "", true));
    REQUIRE(stacks.create(&ring));
    constexpr uint64_t kEach = 100000;  // together far more than the initial hash table
    std::vector<std::vector<uint32_t>> found(4);
    std::vector<std::thread> threads;
    for (std::vector<uint32_t>& nodes : found) {
        threads.emplace_back([&nodes, &stacks, own = &nodes != &found[0]] {
            for (uint64_t number = 1; number <= kEach; ++number) {  // three threads share frames
                nodes.push_back(stacks.intern(0, frame_of(own ? number : number << 20), no_line));
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    for (size_t i = 0; i < found.size(); ++i) {
        for (uint64_t number = 1; number <= kEach; ++number) {
            const uint32_t node = found[i][number - 1];
            REQUIRE(node != 0);
            REQUIRE(ring.nodes[node].frame == frame_of(i != 0 ? number : number << 20));
        }
    }
    ring.remove_file();
    ring.abandon();
    stacks.abandon();
}

TEST_CASE("events whose stacks do not fit are recorded and counted") {
    const Folder folder;
    constexpr uint32_t kMore = 5;
    in_child(folder.path(), [] {
        const auto record_with_stack = [](uint64_t address) {
            EventRecord event = make_event(address, 1);
            event.native_stack = preload::capture_stacks().native;
            preload::record(event);
        };
        record_with_stack(1);
        preload::Session* session = preload::running_session();
        for (uint64_t number = 1; session->stacks.intern(0, number, no_line) != 0;) {
            ++number;
        }
        for (uint32_t i = 0; i < kMore; ++i) {
            record_with_stack(2 + i);
        }
    });
    const Dump dump = read_trace(folder.traces()[0]);
    CHECK(dump.defects == std::vector<std::string>{});
    REQUIRE(dump.events.size() == 1 + kMore);
    CHECK(dump.nodes.size() == preload::kNodeCapacity);
    if (dump.events[0].native_stack != 0) {  // none with the thread sanitizer
        CHECK(dump.events[kMore].native_stack == 0);
        CHECK(dump.facts.at("stacks.without_room") == std::to_string(kMore));
    }
}
