// Traces with pools of the program's own, for tests.
#pragma once

#include <fragtrace/sizes.h>

#include "analyzer/analysis/analyze.h"
#include "tests/support/trace_writer.h"

#include <catch2/catch.hpp>

#include <memory>
#include <utility>

namespace fragtrace::analyzer::testing {

using fragtrace::testing::TemporaryFolder;
using fragtrace::testing::TraceWriter;

inline constexpr std::uint64_t kSegment = 0x7f0010000000;
inline constexpr std::uint32_t kFrames = 2;
inline constexpr std::uint32_t kArena = 3;

// A trace with two pools. Events of pools have no device, as the recorder writes them.
class PoolTrace {
  public:
    PoolTrace() {
        trace.fact("pool.2", "program rmm-pool frames");
        trace.fact("pool.3", "program other arena of frames");
    }

    void alloc(std::uint64_t address,
               std::uint64_t requested,
               std::uint64_t size,
               std::uint32_t pool = kFrames,
               std::uint8_t flags = 0) {
        EventRecord event = of(EventKind::kProgramBlockAlloc, pool);
        event.flags = flags;
        event.address = address;
        event.size = requested;
        event.extra = size;
        event.stream = stream;
        event.python_stack = python_stack;
        trace.event(event);
    }

    void free(std::uint64_t address, std::uint32_t pool = kFrames) {
        EventRecord event = of(EventKind::kProgramBlockFree, pool);
        event.address = address;
        trace.event(event);
    }

    void fails(std::uint64_t requested, std::uint32_t pool = kFrames, std::uint8_t flags = 0) {
        EventRecord event = of(EventKind::kProgramRequestFailed, pool);
        event.flags = flags;
        event.size = requested;
        event.stream = 0;
        trace.event(event);
    }

    // The driver's report about device 0.
    void card(std::uint64_t free_bytes, std::uint64_t total_bytes) {
        EventRecord event = of(EventKind::kMemoryInfo, 0);
        event.device = 0;
        event.size = free_bytes;
        event.extra = total_bytes;
        trace.event(event);
    }

    void end_pool(std::uint32_t pool = kFrames) {
        trace.event(of(EventKind::kProgramPoolEnd, pool));
    }

    void end_stream(std::uint64_t handle, std::uint32_t pool = kFrames) {
        EventRecord event = of(EventKind::kProgramStreamEnd, pool);
        event.stream = handle;
        trace.event(event);
    }

    void label(std::uint64_t address, std::uint64_t text, std::uint32_t pool = kFrames) {
        EventRecord event = of(EventKind::kBlockLabel, pool);
        event.address = address;
        event.size = text;
        trace.event(event);
    }

    std::unique_ptr<Analysis> analyze() {
        trace.end(EndReason::kNormal);
        trace.save(folder.file("t.ftrace"));
        auto analysis = fragtrace::analyzer::analyze(folder.file("t.ftrace"), AnalyzeOptions{});
        REQUIRE(analysis.ok());
        return std::move(analysis).value();
    }

    TraceWriter trace;
    TemporaryFolder folder;
    std::uint32_t python_stack = 0;  // of the next blocks: a node of the stack tree
    std::uint64_t stream = 0;        // of the next blocks

  private:
    static EventRecord of(EventKind kind, std::uint32_t pool) {
        EventRecord event{};
        event.kind = kind;
        event.pool = pool;
        event.device = kDeviceUnknown;
        event.stream = kStreamUnknown;
        return event;
    }
};

}  // namespace fragtrace::analyzer::testing
