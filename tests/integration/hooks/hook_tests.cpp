// Real processes with the recorder: they see the same as without it, and their calls are in the
// trace.
#include <fragtrace/sizes.h>

#include "process.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <sstream>

using namespace fragtrace;
using namespace fragtrace::tests;

namespace {

const std::string kCard = "4GiB";

// Checks that the program behaves the same with and without the recorder. Returns the run with it.
Finished same_with_and_without(const std::vector<std::string>& command, const Setup& setup) {
    Setup with = setup;
    with.preload.insert(with.preload.begin(), shim());
    const Finished bare = run(command, setup);
    Finished traced = run(command, with);
    CAPTURE(traced.output);
    CHECK(traced.exit_code == bare.exit_code);
    CHECK(traced.output == bare.output);
    CHECK(bare.traces.empty());
    return traced;
}

// The (address, size) of every event of a kind, in order.
std::vector<std::pair<uint64_t, uint64_t>> ranges(const TraceContents& trace, EventKind kind) {
    std::vector<std::pair<uint64_t, uint64_t>> result;
    for (const EventRecord& event : trace.of_kind(kind)) {
        result.emplace_back(event.address, event.size);
    }
    return result;
}

size_t count(const TraceContents& trace, EventKind kind) {
    return trace.of_kind(kind).size();
}

void check_driver_client(const std::string& way) {
    const Finished finished = same_with_and_without({built("driver_client"), way}, {.card = kCard});
    CHECK(finished.exit_code == 7);
    const TraceContents& trace = finished.trace();
    CHECK(trace.ended);

    const auto allocations = trace.of_kind(EventKind::kDeviceAlloc);
    REQUIRE(allocations.size() == 2);
    std::istringstream lines(finished.output);
    std::vector<std::pair<uint64_t, uint64_t>> printed;
    for (std::string word; lines >> word;) {
        if (word == "alloc") {
            uint64_t address = 0;
            uint64_t bytes = 0;
            lines >> std::hex >> address >> std::dec >> bytes;
            printed.emplace_back(address, bytes);
        }
    }
    CHECK(ranges(trace, EventKind::kDeviceAlloc) == printed);
    for (const EventRecord& event : allocations) {
        CHECK(event.device == 0);
        CHECK(event.duration_ns > 0);
        CHECK(event.flags == 0);
    }
    const auto frees = trace.of_kind(EventKind::kDeviceFree);
    REQUIRE(frees.size() == 2);  // none for the null pointer
    CHECK(frees[0].address == printed[1].first);
    CHECK(frees[1].address == printed[0].first);

    const auto refused = trace.of_kind(EventKind::kAllocRefused);
    REQUIRE(refused.size() == 1);  // none for zero bytes
    CHECK(refused[0].size == uint64_t{1} << 40);
    CHECK(refused[0].extra == 2);  // CUDA_ERROR_OUT_OF_MEMORY

    const auto reserved = trace.of_kind(EventKind::kAddressReserve);
    const auto created = trace.of_kind(EventKind::kPhysicalCreate);
    const auto mapped = trace.of_kind(EventKind::kMap);
    REQUIRE((reserved.size() == 1 && created.size() == 1 && mapped.size() == 1));
    CHECK(reserved[0].size == 4 * kMiB);
    CHECK(created[0].size == 2 * kMiB);
    CHECK(mapped[0].address == reserved[0].address);
    CHECK(mapped[0].size == 2 * kMiB);
    CHECK(mapped[0].extra == created[0].address);
    CHECK(ranges(trace, EventKind::kUnmap) == ranges(trace, EventKind::kMap));
    CHECK(ranges(trace, EventKind::kAddressFree) == ranges(trace, EventKind::kAddressReserve));
    // Each reference to the handle has its own event and its own release.
    const auto retained = trace.of_kind(EventKind::kPhysicalRetain);
    const auto released = trace.of_kind(EventKind::kPhysicalRelease);
    REQUIRE((retained.size() == 1 && released.size() == 2));
    CHECK(retained[0].address == created[0].address);
    CHECK(released[0].address == created[0].address);
    CHECK(released[1].address == created[0].address);

    // The duration of an event recorded before its call is in a later event.
    for (const EventKind kind : {EventKind::kDeviceFree,
                                 EventKind::kUnmap,
                                 EventKind::kAddressFree,
                                 EventKind::kPhysicalRelease}) {
        for (const EventRecord& event : trace.of_kind(kind)) {
            const auto times = trace.of_kind(EventKind::kCallTime);
            CHECK(std::count_if(times.begin(), times.end(), [&](const EventRecord& time) {
                      return time.address == event.sequence && time.sequence > event.sequence;
                  }) == 1);
        }
    }

    CHECK(count(trace, EventKind::kDeviceReset) == 1);  // the last release of the context

    const auto info = trace.of_kind(EventKind::kMemoryInfo);
    REQUIRE(info.size() == 3);  // after the first allocation, after the refusal, the program's own
    CHECK(info[0].flags == kFlagByPool);
    CHECK(info[1].flags == kFlagByPool);
    CHECK(info[2].flags == 0);
    std::ostringstream expected;
    expected << "info " << info[2].size << ' ' << info[2].extra;
    CHECK(finished.output.find(expected.str()) != std::string::npos);

    CHECK(trace.facts.at("virtual") == "1");
    CHECK(trace.facts.at("device.count") == "1");
    CHECK(trace.facts.at("device.0.total_bytes") == std::to_string(4096 * kMiB));
    CHECK(trace.facts.at("device.0.name").find("fragtrace virtual GPU") == 0);
    CHECK(std::stoi(trace.facts.at("cuda_driver_version")) >= 12000);
}

}  // namespace

TEST_CASE("a driver program that uses dlsym is recorded", "[dlsym]") {
    check_driver_client("dlsym");
}

TEST_CASE("a driver program that uses cuGetProcAddress is recorded", "[entry]") {
    check_driver_client("entry");
}

TEST_CASE("a runtime program is recorded once per call", "[runtime]") {
    const Finished finished = same_with_and_without({built("runtime_client")}, {.card = kCard});
    CHECK(finished.exit_code == 5);
    const TraceContents& trace = finished.trace();
    const auto allocations = trace.of_kind(EventKind::kDeviceAlloc);
    REQUIRE(allocations.size() == 3);
    CHECK(allocations[0].size == 1000);
    CHECK(allocations[1].size == 5 * kMiB);
    CHECK(allocations[2].size == 4096);  // through the driver's entry point
    const auto frees = trace.of_kind(EventKind::kDeviceFree);
    REQUIRE(frees.size() == 1);
    CHECK(frees[0].address == allocations[0].address);
    CHECK(count(trace, EventKind::kDeviceReset) == 1);
    const auto refused = trace.of_kind(EventKind::kAllocRefused);
    REQUIRE(refused.size() == 1);
    CHECK(refused[0].size == uint64_t{1} << 40);
    CHECK(refused[0].extra == 2);
    CHECK(count(trace, EventKind::kMemoryInfo) == 3);
    CHECK(count(trace, EventKind::kEventComplete) == 0);  // events made by programs are not ours
    CHECK(std::stoi(trace.facts.at("cuda_runtime_version")) >= 12000);
}

TEST_CASE("a program with a static runtime finds the driver's functions as before", "[static]") {
    // NVIDIA's runtime refuses a driver that is not NVIDIA's. It must print the same message after
    // it has looked up some hundred functions through our cuGetProcAddress.
    const Finished finished = same_with_and_without({built("static_client")}, {.card = kCard});
    CHECK(finished.exit_code == 4);
}

TEST_CASE("a launch is recorded only if it fails because memory ran out", "[launch]") {
    const Finished finished =
        run({built("launch_client")},
            {.preload = {shim()}, .environment = {"LD_LIBRARY_PATH=" + built("toy_driver")}});
    CAPTURE(finished.output);
    CHECK(finished.exit_code == 0);
    const TraceContents& trace = finished.trace();
    REQUIRE(trace.events.size() == 1);
    CHECK(trace.events[0].kind == EventKind::kCallOutOfMemory);
    CHECK(trace.events[0].extra == 2);
    CHECK(trace.events[0].native_stack != 0);
    CHECK(trace.facts.at("text." + std::to_string(trace.events[0].size)) == "cuLaunchKernel");
}

TEST_CASE("a query of free memory during another thread's allocation is marked", "[looks]") {
    const Finished finished =
        run({built("looks_client")},
            {.preload = {shim()}, .environment = {"LD_LIBRARY_PATH=" + built("watched_driver")}});
    CAPTURE(finished.output);
    CHECK(finished.exit_code == 0);
    uint64_t held = 0;
    size_t settled = 0;
    size_t settled_and_wrong = 0;
    size_t unsettled = 0;
    for (const EventRecord& event : finished.trace().events) {
        if (event.kind == EventKind::kDeviceAlloc) {
            held += event.size;
        } else if (event.kind == EventKind::kDeviceFree) {
            held -= 4 * kMiB;
        } else if (event.kind == EventKind::kMemoryInfo) {
            const bool overlapped = (event.flags & kFlagUnsettled) != 0;
            unsettled += overlapped ? 1 : 0;
            settled += overlapped ? 0 : 1;
            settled_and_wrong += !overlapped && event.extra - event.size != held ? 1 : 0;
        }
    }
    CHECK(settled_and_wrong == 0);
    CHECK(settled >= 40);    // those between the calls
    CHECK(unsettled >= 40);  // at least one in each of them
    const auto loads = finished.trace().of_kind(EventKind::kModuleLoad);
    REQUIRE(loads.size() == 2);
    CHECK(loads[0].size == kMiB);
    CHECK(loads[1].size == 0);  // other processes freed more in the meantime
}

TEST_CASE("stream-ordered events carry their stream, pool and device", "[streams]") {
    const std::string layer = GENERATE("driver", "runtime");
    CAPTURE(layer);
    const Finished finished =
        run({FT_PYTHON3, FT_FAMILIES, "pools", layer},
            {.preload = {shim()}, .card = kCard, .environment = {"HOME=/tmp"}});
    CAPTURE(finished.output);
    REQUIRE(finished.exit_code == 0);
    const TraceContents& trace = finished.trace();
    const auto pools = trace.of_kind(EventKind::kPoolCreate);
    REQUIRE(pools.size() == 1);
    REQUIRE(pools[0].pool > 1);  // 0 is the default pool, 1 means a pool without a number
    char name[40];
    snprintf(
        name, sizeof name, "cuda 0x%016llx", static_cast<unsigned long long>(pools[0].address));
    CHECK(trace.facts.at("pool." + std::to_string(pools[0].pool)) == name);

    const auto allocations = trace.of_kind(EventKind::kAsyncAlloc);
    REQUIRE(allocations.size() == 3);
    CHECK(allocations[0].pool == 0);  // the device's current pool, which is still the default pool
    CHECK(allocations[1].pool == pools[0].pool);  // from a given pool
    CHECK(allocations[2].pool == pools[0].pool);  // the current pool was chosen by then
    CHECK(allocations[0].stream == allocations[1].stream);
    CHECK(allocations[0].stream != 0);
    CHECK(allocations[2].stream == 2);  // the thread's own default stream, not the legacy stream
    const auto refused = trace.of_kind(EventKind::kAllocRefused);
    REQUIRE(refused.size() == 1);
    CHECK(refused[0].pool == pools[0].pool);
    CHECK(refused[0].stream == allocations[0].stream);
    for (const EventRecord& event : trace.events) {
        if (event.kind != EventKind::kCallTime) {
            CHECK(event.device == 0);
        }
        if (event.kind == EventKind::kAsyncAlloc || event.kind == EventKind::kPoolTrim) {
            CHECK(event.duration_ns > 0);
        }
    }
    for (const EventRecord& event : trace.of_kind(EventKind::kAsyncFree)) {
        CHECK(event.stream == allocations[0].stream);
    }
}

TEST_CASE("a program without CUDA still finds no CUDA functions", "[probe]") {
    const Finished finished = run({built("probe_client")}, {.preload = {shim()}});
    CAPTURE(finished.output);
    CHECK(finished.exit_code == 0);
    CHECK(finished.traces.empty());
}

TEST_CASE("a function version that does not exist is not found", "[probe]") {
    const Finished finished =
        same_with_and_without({built("symbol_version_client")}, {.card = kCard});
    CHECK(finished.exit_code == 0);
}

TEST_CASE("RTLD_NEXT searches from its true caller", "[next]") {
    // In the search order, mid comes after the recorder and before the asker, last after the asker.
    const Finished finished =
        run({built("order_client")}, {.preload = {shim(), built("libmid.so")}});
    CHECK(finished.output == "3 3\n");
    const Finished bare = run({built("order_client")}, {.preload = {built("libmid.so")}});
    CHECK(bare.output == "3 3\n");
}

TEST_CASE("each version of a driver function keeps its signature", "[versions]") {
    const Finished finished =
        run({built("versions_client")},
            {.preload = {shim()}, .environment = {"LD_LIBRARY_PATH=" + built("toy_driver")}});
    CAPTURE(finished.output);
    CHECK(finished.exit_code == 0);
    const std::vector<std::pair<uint64_t, uint64_t>> expected = {{0x500000000, 4096},
                                                                 {0x500001000, 8192}};
    CHECK(ranges(finished.trace(), EventKind::kDeviceAlloc) == expected);
    CHECK(count(finished.trace(), EventKind::kDeviceFree) == 1);
}

TEST_CASE("each library calls the runtime that it is linked to", "[callers]") {
    const Finished finished = same_with_and_without(
        {built("toy_client"), built("libuser12.so"), built("libuser13.so")}, {});
    CHECK(finished.exit_code == 0);
    const TraceContents& trace = finished.trace();
    const auto allocations = trace.of_kind(EventKind::kDeviceAlloc);
    REQUIRE(allocations.size() == 6);
    for (size_t i = 0; i < allocations.size(); ++i) {
        CHECK(allocations[i].address >> 32 == (i % 2 == 0 ? 2 : 1));
    }
    CHECK(count(trace, EventKind::kDeviceFree) == 6);
}

TEST_CASE("libraries that alternate or reuse an address keep their runtimes", "[callers]") {
    const bool unloads = GENERATE(false, true);
    CAPTURE(unloads);
    std::vector<std::string> variables = {"TOY_ROUNDS=300"};
    if (unloads) {
        variables.emplace_back("TOY_UNLOADS=1");
    }
    const Finished finished =
        run({built("toy_client"), built("libuser12.so"), built("libuser13.so")},
            {.preload = {shim()}, .environment = variables});
    CAPTURE(finished.output);
    CHECK(finished.exit_code == 0);
    const auto allocations = finished.trace().of_kind(EventKind::kDeviceAlloc);
    REQUIRE(allocations.size() == 600);
    size_t wrong = 0;
    for (size_t i = 0; i < allocations.size(); ++i) {
        wrong += allocations[i].address >> 32 == (i % 2 == 0 ? 2 : 1) ? 0 : 1;
    }
    CHECK(wrong == 0);
}

TEST_CASE("another interposer of cudaMalloc is still called", "[saver]") {
    const bool first = GENERATE(true, false);
    const bool by_handle = GENERATE(true, false);
    CAPTURE(first, by_handle);
    const std::string saver = built("libsaver.so");
    const std::vector<std::string> preload =
        first ? std::vector{shim(), saver} : std::vector{saver, shim()};
    const std::vector<std::string> variables =
        by_handle ? std::vector<std::string>{"SAVER_BY_HANDLE=1"} : std::vector<std::string>{};
    const Finished finished = run({built("toy_client"), built("libuser13.so")},
                                  {.preload = preload, .environment = variables});
    CAPTURE(finished.output);
    CHECK(finished.exit_code == 0);
    CHECK(finished.output.find("saver: 3 allocations, 3 frees") != std::string::npos);
    CHECK(count(finished.trace(), EventKind::kDeviceAlloc) == 3);
    CHECK(count(finished.trace(), EventKind::kDeviceFree) == 3);
}
